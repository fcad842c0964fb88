//! Whether a connection is fit for its next user, and what makes it so.

use std::any::TypeId;

use diesel::connection::TransactionManagerStatus;

use crate::error::Error;
use crate::mark::Mark;
use crate::reset::Reset;
use crate::watch::Seen;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fitness {
    Fit,
    Dirty,
    Broken,
}

/// What diesel knows about the transaction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transaction {
    None,
    Open,
    /// A transaction of `begin_test_transaction`, which all users of the connection share.
    Test {
        depth: u32,
    },
    /// A rollback has failed.
    InError,
}

impl Transaction {
    pub(crate) fn of(status: &TransactionManagerStatus) -> Self {
        let TransactionManagerStatus::Valid(status) = status else {
            return Self::InError;
        };
        match &status.in_transaction {
            None => Self::None,
            Some(test) if test.test_transaction => Self::Test {
                depth: test.transaction_depth.get(),
            },
            Some(_) => Self::Open,
        }
    }
}

/// All that is known about a connection without asking its server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    /// `None` if the user has replaced the instrumentation, so that nothing was noted.
    pub(crate) seen: Option<Seen>,
    pub(crate) transaction: Transaction,
    /// diesel's word: a transaction is open, or was cancelled midway, or the connection is lost.
    pub(crate) is_broken: bool,
    pub(crate) is_postgres: bool,
}

impl State {
    pub(crate) fn fitness(&self, reset: &Reset) -> Fitness {
        let Some(seen) = self.seen else {
            return Fitness::Broken;
        };
        // Other drivers take the answer to a dropped statement for the answer to the next one.
        if seen.running > 0 && !self.is_postgres {
            return Fitness::Broken;
        }
        let is_test = matches!(self.transaction, Transaction::Test { .. });
        if seen.mark == Mark::Session && *reset == Reset::Close && !is_test {
            return Fitness::Broken;
        }
        let needs_proof = seen.running > 0 || seen.in_doubt || seen.mark > Mark::Harmless;
        match self.transaction {
            Transaction::InError => Fitness::Broken,
            Transaction::Open => Fitness::Dirty,
            _ if self.is_broken => Fitness::Broken,
            Transaction::Test { depth } if depth > 1 || seen.running > 0 => Fitness::Dirty,
            Transaction::None if needs_proof => Fitness::Dirty,
            Transaction::None | Transaction::Test { .. } => Fitness::Fit,
        }
    }

    /// Returns whether the next use in the same scope needs this connection.
    pub(crate) fn must_stay(&self) -> bool {
        let mark = self.seen.map_or(Mark::Harmless, |seen| seen.mark);
        self.transaction == Transaction::Open
            || mark == Mark::Transaction
            || mark == Mark::Session && !self.is_broken
    }

    /// Returns the statements of which one must succeed, so that the connection is proven to be
    /// alive and in no transaction.
    pub(crate) fn proofs(&self) -> &'static [&'static str] {
        let mark = self.seen.map_or(Mark::Session, |seen| seen.mark);
        match self.transaction {
            Transaction::Test { .. } => &["SELECT 1"],
            Transaction::None if mark == Mark::Harmless => &["SELECT 1"],
            // PostgreSQL logs a warning at a `ROLLBACK` without a transaction, and refuses `BEGIN`
            // in a failed one.
            _ if self.is_postgres => &["BEGIN; ROLLBACK", "ROLLBACK"],
            // SQLite refuses a `ROLLBACK` without a transaction. MySQL does not, and takes `BEGIN`
            // as a commit.
            _ => &["ROLLBACK", "BEGIN; ROLLBACK"],
        }
    }

    /// Returns the statements that undo the changes of the session.
    pub(crate) fn undo<'a>(&self, reset: &'a Reset) -> Option<&'a str> {
        let is_changed = self.seen.is_some_and(|seen| seen.mark == Mark::Session);
        match (reset, self.transaction) {
            (_, Transaction::Test { .. }) => None,
            (Reset::Query(sql), _) if is_changed => Some(sql),
            _ => None,
        }
    }

    /// Fails if the connection is not fit after it was cleaned.
    pub(crate) fn must_be_fit(&self, reset: &Reset) -> Result<(), Error> {
        match self.fitness(reset) {
            Fitness::Fit => Ok(()),
            Fitness::Dirty | Fitness::Broken => Err(Error::Unfit),
        }
    }
}

/// Returns whether this backend is PostgreSQL, whose driver sorts out the answers to dropped
/// statements. Without the feature, it is treated like any other.
pub(crate) fn is_postgres<B: 'static>() -> bool {
    #[cfg(feature = "postgres")]
    let postgres = Some(TypeId::of::<diesel::pg::Pg>());
    #[cfg(not(feature = "postgres"))]
    let postgres = None;
    postgres == Some(TypeId::of::<B>())
}
