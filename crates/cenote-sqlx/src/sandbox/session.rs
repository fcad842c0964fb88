//! A session in a sandbox: its transaction, and the savepoint before each statement outside a
//! transaction of the user.
//!
//! Where a failed statement fails the whole transaction, a savepoint stands before every such
//! statement. It moves forward before the next one, in one round trip.

use sqlx::Error;

use super::dialects::Sandboxed;
use super::way_out;
use crate::dialect::{Dialect, Statements};
use crate::error::lost;
use crate::label::label;
use crate::reading::{Effect, Reading};
use crate::session::Session;
use crate::transaction::TransactionOptions;

const SAVE: &str = "SAVEPOINT cenote_sandbox";
const MOVE: &str = "RELEASE SAVEPOINT cenote_sandbox; SAVEPOINT cenote_sandbox";
const UNDO: &str = "ROLLBACK TO SAVEPOINT cenote_sandbox";

/// The depth of the transaction of a sandbox. Transactions of the user are deeper.
const FLOOR: usize = 1;

impl<DB: Dialect> Session<DB> {
    /// Begins the transaction of a sandbox.
    pub(crate) async fn enter_sandbox(&mut self) -> Result<(), Error> {
        self.begin(&TransactionOptions::new()).await?;
        if <DB as Sandboxed>::FAILS_AS_A_WHOLE {
            self.run(SAVE).await?;
        }
        self.state.floor = FLOOR;
        self.state.unsaved = false;
        Ok(())
    }

    /// The cleaning that follows rolls everything back.
    pub(crate) fn leave_sandbox(&mut self) {
        self.state.floor = 0;
    }

    /// Prepares a statement or a transaction outside a transaction of the user.
    pub(crate) async fn save(&mut self) -> Result<(), Error> {
        if !self.is_on_floor() || !self.state.unsaved {
            return Ok(());
        }
        self.run(MOVE).await?;
        self.state.unsaved = false;
        Ok(())
    }

    /// Undoes a statement that failed, or that was dropped before its end.
    pub(crate) async fn undo(&mut self) -> Result<(), Error> {
        if !self.is_on_floor() || self.state.broken {
            return Ok(());
        }
        self.state.context.transaction_ended();
        <DB as Statements>::run(&mut self.connection, UNDO).await
    }

    /// Returns whether a savepoint of the sandbox stands before the next statement.
    fn is_on_floor(&self) -> bool {
        let floor = self.state.floor;
        <DB as Sandboxed>::FAILS_AS_A_WHOLE && floor > 0 && self.depth() == floor
    }

    /// Refuses text that would end the transaction of the sandbox.
    pub(crate) fn refuse_in_sandbox(&self, sql: &str, reading: &Reading) -> Result<(), Error> {
        let harmless = reading.effect == Effect::Keeps && !reading.ends_open;
        if self.state.floor == 0 || harmless {
            return Ok(());
        }
        let why = match <DB as Sandboxed>::COMMITS_DDL {
            true => "put what commits by itself into the migrations",
            false => "it is never committed",
        };
        let why = format!(
            "`{}` begins or ends a transaction, which would end the sandbox ({why}): use \
             `Db::transaction` or `Db::begin`",
            label(sql)
        );
        Err(Error::InvalidArgument(way_out(&why)))
    }

    /// Returns the error of a session whose transaction the server has ended.
    pub(crate) fn ended(&self, why: &str) -> Error {
        match self.state.floor {
            0 => lost(why),
            _ => lost(&way_out(&format!(
                "the sandbox is lost ({why}): change the test"
            ))),
        }
    }

    /// Names the way out in the error of a statement that cannot run in a transaction.
    pub(crate) fn explain(&self, error: Error) -> Error {
        if self.state.floor > 0 && <DB as Sandboxed>::needs_own_database(&error) {
            let why = format!("{error}, and everything in a sandbox is in one: leave it out");
            return Error::InvalidArgument(way_out(&why));
        }
        error
    }
}
