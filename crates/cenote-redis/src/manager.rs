//! The manager: how a session is opened, checked, cleaned and closed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cenote::error::ErrorClass;
use cenote::{LeaseEnd, Manager, Severer};
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, ErrorKind, ProtocolVersion, PushInfo, RedisConnectionInfo, RedisError,
    RedisResult,
};

use crate::credentials::{AskCredentials, login};
use crate::dial::Address;
use crate::error::{Class, classify, io_error};
use crate::messages::Mailbox;
use crate::session::Session;
use crate::wire::Wire;

/// How many commands may wait for the driver of a connection. The default of 50 makes callers of a
/// busy lane wait twice.
const BUFFER: usize = 1024;

/// The manager of the sessions of one server. [`Pool::pool`](crate::Pool::pool) is a `cenote::Pool`
/// of it.
#[derive(Clone)]
pub struct Redis(pub(crate) Arc<Template>);

/// Everything that a new connection needs.
pub(crate) struct Template {
    pub(crate) address: Address,
    pub(crate) tcp: TcpSettings,
    pub(crate) login: RedisConnectionInfo,
    pub(crate) credentials: Option<Arc<AskCredentials>>,
    pub(crate) response_timeout: Option<Duration>,
}

impl Manager for Redis {
    type Resource = Session;
    type Error = RedisError;

    async fn open(&self) -> RedisResult<Session> {
        let template = &*self.0;
        let login = login(&template.login, template.credentials.as_deref()).await?;
        let stream = template.address.dial(&template.tcp).await?;
        let messages = Mailbox::default();
        // The session has its own time limit, which blocking commands are free of.
        let mut config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_pipeline_buffer_size(BUFFER);
        if login.protocol() != ProtocolVersion::RESP2 {
            let messages = messages.clone();
            config = config.set_push_sender(move |message: PushInfo| {
                messages.put(message);
                Ok::<_, ()>(())
            });
        }
        let connected = MultiplexedConnection::new_with_config(&login, stream, config);
        let (connection, driver) = connected.await?;
        let listener = messages.clone();
        let wire = Wire::spawn(driver, move || listener.hang_up());
        let limit = template.response_timeout;
        Ok(Session::new(connection, wire, login, limit, messages))
    }

    fn classify(&self, error: &RedisError) -> ErrorClass {
        match (classify(error), error.kind()) {
            (Class::Denied, _) => ErrorClass::Denied,
            (_, ErrorKind::Io) => match io_error(error) {
                // A certificate that is not trusted.
                Some(io) if io.kind() == std::io::ErrorKind::InvalidData => ErrorClass::Denied,
                Some(io) => ErrorClass::of_io(io),
                None => ErrorClass::Unreachable,
            },
            (Class::Refused, _) => ErrorClass::Overloaded,
            _ => ErrorClass::Other,
        }
    }

    async fn check(&self, session: &mut Session) -> RedisResult<()> {
        session.ping().await
    }

    fn is_broken(&self, session: &mut Session, _: LeaseEnd) -> bool {
        session.is_broken()
    }

    fn needs_cleaning(&self, session: &mut Session) -> bool {
        session.is_dirty()
    }

    fn must_stay(&self, session: &mut Session) -> bool {
        session.must_stay()
    }

    async fn clean(&self, session: &mut Session) -> RedisResult<()> {
        session.clean().await
    }

    /// The slot is free when the socket is closed.
    async fn close(&self, session: Session) -> RedisResult<()> {
        session.wire.sever();
        session.wire.ended().await;
        Ok(())
    }

    fn severer(&self, session: &mut Session) -> Option<Severer> {
        Some(Box::new(session.wire.severer()))
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis")
            .field("address", &self.0.address)
            .field("db", &self.0.login.db())
            .finish_non_exhaustive()
    }
}
