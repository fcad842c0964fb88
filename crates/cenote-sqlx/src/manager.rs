//! The manager: how a session is opened, checked, cleaned and closed.

use std::fmt;
use std::sync::Arc;

use cenote::error::ErrorClass;
use cenote::{LeaseEnd, Manager};
use sqlx::{Connection, Error};
use sqlx_core::transaction::TransactionManager;

use crate::context::Applied;
use crate::dialect::{Dialect, Statements};
use crate::dirt::Dirt;
use crate::error::{Class, is_denied, lost};
use crate::sandbox;
use crate::session::{Progress, Session};
use crate::template::{Reset, Template};

/// PostgreSQL refuses every statement in a transaction that has failed.
const FAILED: &str = "25P02";

/// The manager of the sessions of one database. [`Db::pool`](crate::Db::pool) is a `cenote::Pool`
/// of it.
///
/// ```
/// # #[cfg(feature = "sqlite")] fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote::Pool;
/// use cenote_sqlx::{Db, Sql};
///
/// let db = Db::sqlite("sqlite::memory:").max_size(1).build()?;
/// let pool: &Pool<Sql<sqlx::Sqlite>> = db.pool();
/// assert_eq!(pool.status().max_size, 1);
/// # Ok(()) }
/// # #[cfg(not(feature = "sqlite"))] fn main() {}
/// ```
pub struct Sql<DB: Dialect> {
    pub(crate) template: Arc<Template<DB>>,
}

impl<DB: Dialect> Clone for Sql<DB> {
    fn clone(&self) -> Self {
        let template = Arc::clone(&self.template);
        Self { template }
    }
}

impl<DB: Dialect> Manager for Sql<DB> {
    type Resource = Session<DB>;
    type Error = Error;

    async fn open(&self) -> Result<Session<DB>, Error> {
        if let Some(key) = &self.template.sandbox {
            return sandbox::open(&self.template, key).await;
        }
        self.template.drop_anchor().await?;
        let mut connection = self.template.connect().await?;
        let settings = self.template.settings.version();
        self.template.apply_settings(&mut connection).await?;
        let brake = DB::brake(&mut connection, &self.template).await?;
        let watch = self.template.watch(&mut connection).await?;
        let mut session = Session::new(connection, brake, Arc::clone(&self.template));
        session.state.settings = settings;
        session.watch = watch;
        Ok(session)
    }

    fn classify(&self, error: &Error) -> ErrorClass {
        if is_denied(error) {
            return ErrorClass::Denied;
        }
        match (DB::classify(error), error) {
            (_, Error::Io(error)) => ErrorClass::of_io(error),
            (Class::Denied, _) => ErrorClass::Denied,
            (Class::Refused, _) => ErrorClass::Overloaded,
            (Class::Broken, _) => ErrorClass::Unreachable,
            (Class::Statement | Class::Conflict, _) => ErrorClass::Other,
        }
    }

    async fn check(&self, session: &mut Session<DB>) -> Result<(), Error> {
        match &self.template.check_query {
            Some(sql) => <DB as Statements>::run(&mut session.connection, sql).await?,
            None => session.connection.ping().await?,
        }
        if session.is_astray() {
            return Err(lost("the file of the database was removed or replaced"));
        }
        Ok(())
    }

    fn is_broken(&self, session: &mut Session<DB>, end: LeaseEnd) -> bool {
        // A sandbox that has ended is over. Its close rolls it back.
        session.state.broken || session.state.floor > 0 && end != LeaseEnd::Idle
    }

    fn needs_cleaning(&self, session: &mut Session<DB>) -> bool {
        session.state.stays = false;
        let dirt = match &self.template.reset {
            Reset::Never => session.state.dirt.has(Dirt::TRANSACTION),
            Reset::IfDirty => session.state.dirt != Dirt::NONE,
            Reset::Always | Reset::Query(_) => true,
        };
        dirt || session.is_in_transaction() || session.state.progress != Progress::Done
    }

    fn must_stay(&self, session: &mut Session<DB>) -> bool {
        session.must_stay()
    }

    async fn clean(&self, session: &mut Session<DB>) -> Result<(), Error> {
        session.state.doomed = Arc::default();
        session.state.unclean = true;
        session.state.context.doubt();
        end_transactions(session).await?;
        reset(session).await?;
        if session.state.broken {
            return Err(lost("the connection broke while it was cleaned"));
        }
        session.state.unclean = false;
        session.state.dirt = Dirt::NONE;
        session.state.failed = false;
        session.state.given_up = false;
        session.forget_transactions();
        session.right = None;
        Ok(())
    }

    fn shares_sessions(&self) -> bool {
        self.template.pooled
    }

    async fn close(&self, mut session: Session<DB>) -> Result<(), Error> {
        let state = &session.state;
        if let Some(key) = self.template.sandbox.as_ref().filter(|_| !state.broken) {
            return sandbox::go_home(self, key, session).await;
        }
        if state.progress == Progress::Running && !state.broken && !state.unclean {
            // The server should not go on with a statement whose caller is gone.
            let _ = session.settle(false).await;
        }
        session.connection.close().await
    }
}

/// Ends what was dropped before its end, and rolls back every open transaction.
pub(crate) async fn end_transactions<DB: Dialect>(session: &mut Session<DB>) -> Result<(), Error> {
    let interrupted = session.state.progress != Progress::Done;
    if interrupted {
        session.settle(false).await?;
    }
    session.catch_up().await?;
    let suspect = interrupted || session.state.dirt.has(Dirt::TRANSACTION);
    roll_back(session, suspect).await?;
    match session.state.afterwards.take() {
        Some(sql) => session.run(sql).await,
        None => Ok(()),
    }
}

/// Rolls back every open transaction. The driver counts the transactions that were begun through
/// it. If there may be others, the server is asked.
async fn roll_back<DB: Dialect>(session: &mut Session<DB>, suspect: bool) -> Result<(), Error> {
    while session.depth() > 0 {
        let depth = session.depth();
        session.roll_back(depth).await?;
    }
    if !suspect {
        return Ok(());
    }
    // The driver sends a statement without effect as if it were a `BEGIN`, and then compares the
    // state that the server reports.
    let probe = sqlx::SqlStr::from_static(DB::PROBE);
    let asked = DB::TransactionManager::begin(&mut session.connection, Some(probe)).await;
    match asked {
        Err(Error::BeginFailed) => Ok(()),
        // A transaction was open. The driver counts it now.
        Ok(()) => session.roll_back(1).await,
        // A transaction was open, and had failed. Any other error belongs to an operation of the
        // driver that was dropped, so that its answers no longer fit its questions.
        Err(Error::Database(error)) if error.code().as_deref() == Some(FAILED) => {
            session.run("ROLLBACK").await
        }
        Err(error) => Err(error),
    }
}

async fn reset<DB: Dialect>(session: &mut Session<DB>) -> Result<(), Error> {
    let template = Arc::clone(&session.template);
    let dirt = match &template.reset {
        Reset::Never => return Ok(()),
        Reset::IfDirty if !session.state.dirt.has(Dirt::SESSION) => return Ok(()),
        Reset::IfDirty => session.state.dirt,
        Reset::Always => Dirt::ANY,
        Reset::Query(sql) => {
            if DB::scan(sql).has(Dirt::PREPARED) {
                // The server forgets the driver's statements, so the driver must forget them too.
                session.connection.clear_cached_statements().await?;
            }
            session.run(sql).await?;
            return template.apply_settings(&mut session.connection).await;
        }
    };
    DB::reset(&mut session.connection, dirt).await?;
    session.state.context = Applied::default();
    template.apply_settings(&mut session.connection).await
}

impl<DB: Dialect> fmt::Debug for Sql<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.template.fmt(f)
    }
}
