//! The manager: how a session is opened, checked, cleaned and closed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cenote::error::ErrorClass;
use cenote::{LeaseEnd, Manager};
use mysql_async::prelude::Queryable;
use tokio::time::timeout;

use crate::error::{Class, Error, io_cause};
use crate::killer::ServerId;
use crate::session::{Session, Status, drain};
use crate::template::{Reset, Template};

/// How long rows are skipped that no caller reads. A statement with more rows is killed.
const SKIP: Duration = Duration::from_millis(250);

/// The manager of the sessions of one database. A [`Pool`](crate::Pool) dereferences to a
/// `cenote::Pool` of it.
///
/// ```
/// use cenote_mysql::{Mysql, Pool};
///
/// let pool = Pool::from_url("mysql://app@localhost/shop").max_size(5).build()?;
/// let core: &cenote::Pool<Mysql> = &pool;
/// assert_eq!(core.status().max_size, 5);
/// # Ok::<_, cenote_mysql::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Mysql {
    pub(crate) template: Arc<Template>,
}

impl Manager for Mysql {
    type Resource = Session;
    type Error = Error;

    async fn open(&self) -> Result<Session, Error> {
        let mut conn = self.template.connect().await?;
        let server = match self.template.cancel {
            true => Some(ServerId::of(&mut conn).await?),
            false => None,
        };
        self.template.set_up(&mut conn).await?;
        Ok(Session::new(conn, server))
    }

    fn classify(&self, error: &Error) -> ErrorClass {
        match (error.class(), error.as_mysql().and_then(io_cause)) {
            (Class::Denied, _) => ErrorClass::Denied,
            (_, Some(error)) => ErrorClass::of_io(error),
            (Class::Refused, None) => ErrorClass::Overloaded,
            (Class::Broken, None) => ErrorClass::Unreachable,
            (Class::Statement | Class::Conflict, None) => ErrorClass::Other,
        }
    }

    async fn check(&self, session: &mut Session) -> Result<(), Error> {
        Ok(session.conn.ping().await?)
    }

    fn is_broken(&self, session: &mut Session, _: LeaseEnd) -> bool {
        session.is_over()
    }

    fn needs_cleaning(&self, session: &mut Session) -> bool {
        let needs =
            self.resets(session) || session.undo.is_some() || session.status() != Status::Outside;
        if !needs {
            // The wish of a holder is over with its lease.
            session.reset = None;
        }
        needs
    }

    fn must_stay(&self, session: &mut Session) -> bool {
        session.must_stay()
    }

    async fn clean(&self, session: &mut Session) -> Result<(), Error> {
        if session.is_astray() {
            return Err(Error::lost("the session was given to another user"));
        }
        if !session.is_quiet() && timeout(SKIP, drain(&mut session.conn)).await.is_err() {
            return Err(Error::lost("a row stream was dropped long before its end"));
        }
        if self.resets(session) {
            self.template.reset(&mut session.conn).await?;
        } else if session.ask_status().await? != Status::Outside {
            session.conn.query_drop("ROLLBACK").await?;
        }
        session.cleaned();
        Ok(())
    }

    async fn close(&self, mut session: Session) -> Result<(), Error> {
        if session.is_quiet() {
            return Ok(session.conn.disconnect().await?);
        }
        let id = session.conn.id();
        let was_lost = session.cut();
        if let (false, Some(server)) = (was_lost, &session.server) {
            // The server should not go on with a statement whose caller is gone.
            self.template.killer.kill(&self.template, id, server).await;
        }
        Ok(())
    }
}

impl Mysql {
    fn resets(&self, session: &Session) -> bool {
        let usual = self.template.reset == Reset::Always;
        session.used && session.reset.unwrap_or(usual)
    }
}

impl fmt::Debug for Mysql {
    /// Leaves out the options, which contain the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mysql")
            .field("reset", &self.template.reset)
            .finish_non_exhaustive()
    }
}
