//! The manager: how a session is opened, checked, cleaned and closed.

use std::fmt;
use std::io;
use std::sync::Arc;

use cenote::error::ErrorClass;
use cenote::{LeaseEnd, Manager, Severer};
use tokio_postgres::SimpleQueryMessage;

use crate::error::{Class, Error};
use crate::meaning::{Dirt, Meaning};
use crate::session::Session;
use crate::template::{Reset, Template};

/// What `DISCARD ALL` does, but for the prepared statements, which stay.
const RESET: &str = "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; \
                     SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES";

/// The manager of the sessions of one database. A [`Pool`](crate::Pool) dereferences to a
/// `cenote::Pool` of it.
///
/// ```
/// use cenote_postgres::{Pool, Postgres};
///
/// let pool = Pool::from_url("postgres://app@localhost/shop").max_size(5).build()?;
/// let core: &cenote::Pool<Postgres> = &pool;
/// assert_eq!(core.status().max_size, 5);
/// # Ok::<_, cenote_postgres::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Postgres {
    pub(crate) template: Arc<Template>,
}

impl Manager for Postgres {
    type Resource = Session;
    type Error = Error;

    async fn open(&self) -> Result<Session, Error> {
        let template = &self.template;
        let (client, line) = template.connect().await?;
        let mut session = Session::new(client, line, template);
        if template.cancel {
            session.backend = Some(backend(&session).await?);
        }
        template.apply_settings(&session.client).await?;
        Ok(session)
    }

    fn classify(&self, error: &Error) -> ErrorClass {
        let io = error.as_postgres().and_then(std::error::Error::source);
        match (error.class(), io.and_then(|error| error.downcast_ref())) {
            (Class::Denied, _) => ErrorClass::Denied,
            (_, Some(error)) => ErrorClass::of_io(error),
            (Class::Refused, None) => ErrorClass::Overloaded,
            (Class::Broken, None) => ErrorClass::Unreachable,
            (Class::Statement | Class::Conflict, None::<&io::Error>) => ErrorClass::Other,
        }
    }

    async fn check(&self, session: &mut Session) -> Result<(), Error> {
        if let Some(why) = session.line.lost() {
            return Err(Error::lost(why));
        }
        Ok(session.client.batch_execute("").await?)
    }

    fn is_broken(&self, session: &mut Session, _: LeaseEnd) -> bool {
        session.client.is_closed() || session.state.is_doomed()
    }

    fn needs_cleaning(&self, session: &mut Session) -> bool {
        match &self.template.reset {
            Reset::IfDirty => !session.state.is_clean(),
            Reset::Never => {
                session.state.is_interrupted() || session.state.dirt().has(Dirt::TRANSACTION)
            }
            Reset::Always | Reset::Query(_) => true,
        }
    }

    fn must_stay(&self, session: &mut Session) -> bool {
        let in_transaction = session.depth > 0 || session.state.dirt().has(Dirt::TRANSACTION);
        let is_broken = session.client.is_closed() || session.state.is_doomed();
        // After a broken connection the statements of its transaction must fail, too.
        in_transaction || !is_broken && session.state.dirt().has(Dirt::STATE)
    }

    async fn clean(&self, session: &mut Session) -> Result<(), Error> {
        let (client, state) = (&session.client, &session.state);
        session.settle().await?;
        let dirt = state.dirt();
        if dirt.has(Dirt::TRANSACTION) {
            client.batch_execute("ROLLBACK").await?;
        }
        let resets = match &self.template.reset {
            Reset::Never => false,
            Reset::IfDirty => dirt.has(Dirt::STATE | Dirt::PREPARED),
            Reset::Always | Reset::Query(_) => true,
        };
        if resets {
            let sql = match &self.template.reset {
                Reset::Query(sql) => sql,
                _ if dirt.has(Dirt::PREPARED) => "DISCARD ALL",
                _ => RESET,
            };
            client.batch_execute(sql).await?;
            // `RESET` keeps all prepared statements.
            if sql != RESET && (dirt | Meaning::of_batch(sql).dirt).has(Dirt::PREPARED) {
                session.cache.clear();
            }
            self.template.apply_settings(client).await?;
        }
        session.depth = 0;
        session.state.cleaned();
        Ok(())
    }

    fn severer(&self, session: &mut Session) -> Option<Severer> {
        let task = session.line.abort_handle();
        Some(Box::new(move || task.abort()))
    }

    /// Fails if the connection was lost before, so that observers hear why.
    async fn close(&self, session: Session) -> Result<(), Error> {
        let Session {
            client,
            mut line,
            state,
            ..
        } = session;
        if self.template.cancel && state.is_interrupted() && !client.is_closed() {
            // The server should not go on with a statement whose caller is gone. A request that
            // comes late does no harm, because this session is over.
            let _ = self.template.connector.cancel(client.cancel_token()).await;
        }
        drop(client);
        line.end().await;
        match line.lost() {
            Some(why) => Err(Error::lost(why)),
            None => Ok(()),
        }
    }
}

/// Asks for the number of the server's process, because the driver does not show it.
async fn backend(session: &Session) -> Result<i32, Error> {
    let answer = session
        .client
        .simple_query("SELECT pg_backend_pid()")
        .await?;
    let number = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    });
    number.ok_or_else(|| Error::lost("the server did not tell its process"))
}

impl fmt::Debug for Postgres {
    /// Leaves out the options, which contain the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("reset", &self.template.reset)
            .finish_non_exhaustive()
    }
}
