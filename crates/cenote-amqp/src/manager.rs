//! The managers: of the connections, and of the channels on them.

use std::fmt;
use std::io;
use std::sync::Arc;

use cenote::error::ErrorClass;
use cenote::second_level::Upper;
use cenote::{LeaseEnd, Manager};
use lapin::options::ConfirmSelectOptions;
use lapin::protocol::{AMQPErrorKind, AMQPHardError, AMQPSoftError};
use lapin::runtime::default_runtime;
use lapin::tcp::{AMQPUriTcpExt, AsyncTcpStream, OwnedTLSConfig};
use lapin::uri::{AMQPScheme, AMQPUri};
use lapin::{Connection, ConnectionProperties, Error, ErrorKind};

use crate::channel::Channel;

const GOODBYE: u16 = 200;

const NO_TLS: &str =
    "this program has no TLS for `amqps://`: add `lapin` with the feature `rustls`";

/// The manager of the connections. [`Pool::connections`](crate::Pool::connections) returns their
/// pool.
#[derive(Clone)]
pub struct Connections {
    pub(crate) uri: AMQPUri,
    pub(crate) properties: ConnectionProperties,
    pub(crate) tls: OwnedTLSConfig,
    pub(crate) channels: u16,
}

impl Manager for Connections {
    type Resource = Arc<Connection>;
    type Error = Error;

    async fn open(&self) -> Result<Arc<Connection>, Error> {
        let (uri, properties) = (self.uri.clone(), self.properties.clone());
        let tls = self.tls.clone();
        let connect = async move |uri: AMQPUri, runtime| {
            let config = tls.as_ref();
            let stream = AMQPUriTcpExt::connect_with_config_async(&uri, config, &runtime).await?;
            // A driver without TLS connects all the same, and would send the password.
            match stream {
                AsyncTcpStream::Plain(_) if uri.scheme == AMQPScheme::AMQPS => {
                    Err(io::Error::other(NO_TLS).into())
                }
                stream => Ok(stream),
            }
        };
        let connecting = Connection::connector(uri, default_runtime()?, connect, properties);
        let connection = connecting.await?;
        let most = connection.configuration().channel_max();
        // Zero: the server has no limit.
        if (1..self.channels).contains(&most) {
            let _ = connection.close(GOODBYE, "OK".into()).await;
            return Err(io::Error::other(format!(
                "the server allows {most} channels on a connection: lower \
                 `channels_per_connection`, which is {}",
                self.channels
            ))
            .into());
        }
        Ok(Arc::new(connection))
    }

    fn classify(&self, error: &Error) -> ErrorClass {
        match error.kind() {
            ErrorKind::IOError(error) => ErrorClass::of_io(error),
            ErrorKind::ProtocolError(error) => match error.kind() {
                AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED)
                | AMQPErrorKind::Hard(AMQPHardError::NOTALLOWED | AMQPHardError::INVALIDPATH) => {
                    ErrorClass::Denied
                }
                AMQPErrorKind::Hard(AMQPHardError::CONNECTIONFORCED) => ErrorClass::Unreachable,
                AMQPErrorKind::Hard(AMQPHardError::RESOURCEERROR) => ErrorClass::Overloaded,
                AMQPErrorKind::Soft(_) | AMQPErrorKind::Hard(_) => ErrorClass::Other,
            },
            ErrorKind::MissingHeartbeatError | ErrorKind::InvalidConnectionState(_) => {
                ErrorClass::Unreachable
            }
            ErrorKind::AuthProviderError(_) => ErrorClass::Denied,
            _ => ErrorClass::Other,
        }
    }

    /// Opens a channel and closes it.
    async fn check(&self, connection: &mut Arc<Connection>) -> Result<(), Error> {
        let channel = connection.create_channel().await?;
        channel.close(GOODBYE, "OK".into()).await
    }

    fn is_broken(&self, connection: &mut Arc<Connection>, _: LeaseEnd) -> bool {
        !connection.status().connected()
    }

    /// A connection that is lost needs no goodbye.
    async fn close(&self, connection: Arc<Connection>) -> Result<(), Error> {
        if !connection.status().connected() {
            return Ok(());
        }
        connection.close(GOODBYE, "OK".into()).await
    }
}

impl fmt::Debug for Connections {
    /// Leaves out the URL, which contains the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").finish_non_exhaustive()
    }
}

/// What opens the channels. A [`Pool`](crate::Pool) dereferences to a `cenote::Pool` of it.
#[derive(Clone, Debug)]
pub struct Channels {
    pub(crate) confirms: bool,
}

impl Upper for Channels {
    type Base = Connections;
    type Resource = Channel;
    type Error = Error;

    async fn open(&self, connection: &mut Arc<Connection>) -> Result<Channel, Error> {
        let channel = connection.create_channel().await?;
        if self.confirms {
            let options = ConfirmSelectOptions::default();
            channel.confirm_select(options).await?;
        }
        Ok(Channel::new(channel))
    }

    /// The other channels of a connection do not suffer if it has no number left for one more.
    fn spoils_base(&self, error: &Error) -> bool {
        !matches!(error.kind(), ErrorKind::ChannelsLimitReached)
    }

    async fn check(&self, channel: &mut Channel, _: &mut Arc<Connection>) -> Result<(), Error> {
        channel.prove().await
    }

    /// An error that closes one channel says nothing about the server.
    fn is_spent(&self, channel: &mut Channel, _: &mut Arc<Connection>, _: LeaseEnd) -> bool {
        channel.is_spent()
    }

    fn needs_cleaning(&self, channel: &mut Channel, _: &mut Arc<Connection>) -> bool {
        channel.is_unproven()
    }

    async fn clean(&self, channel: &mut Channel, _: &mut Arc<Connection>) -> Result<(), Error> {
        channel.prove().await
    }

    async fn close(&self, channel: Channel, connection: &mut Arc<Connection>) -> Result<(), Error> {
        match channel.close().await {
            // The server has closed the channel meanwhile.
            Err(_) if connection.status().connected() => Ok(()),
            closed => closed,
        }
    }
}
