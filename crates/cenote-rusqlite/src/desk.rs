//! The desk: the side of a session that is on its thread. It has the connection, runs closures on
//! it, and tells the other side in what state they have left it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::thread;

use rusqlite::{Connection, DropBehavior, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use crate::brake::Brake;
use crate::busy;
use crate::class::classify;
use crate::error::{Error, of_closure};
use crate::file::File;
use crate::template::{Role, Template, probe};
use crate::watch;

/// Work for the thread of a session.
pub(crate) struct Job {
    pub(crate) work: Box<dyn FnOnce(&mut Desk) + Send>,
    /// Dropped when the thread is free and the state of the session is known.
    pub(crate) end: oneshot::Sender<()>,
}

/// The state of a session, which its thread writes after each job.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Whether a transaction is open.
    pub(crate) in_transaction: AtomicBool,
    /// Whether a statement has changed the session.
    pub(crate) changed: Arc<AtomicBool>,
    /// Whether the connection cannot be used again.
    pub(crate) lost: AtomicBool,
}

pub(crate) struct Desk {
    connection: Connection,
    role: Role,
    template: Arc<Template>,
    state: Arc<State>,
    brake: Arc<Brake>,
}

impl Desk {
    /// Opens the connection. It blocks.
    pub(crate) fn open(
        template: Arc<Template>,
        role: Role,
        state: Arc<State>,
        brake: Arc<Brake>,
    ) -> rusqlite::Result<Self> {
        let connection = open(&template, role, &state, &brake)?;
        state.changed.store(false, Ordering::Relaxed);
        Ok(Self {
            connection,
            role,
            template,
            state,
            brake,
        })
    }

    pub(crate) fn file(&self) -> Option<File> {
        File::of(&self.connection).filter(|_| !self.template.place.is_in_memory())
    }

    /// Does jobs until there is no session to send them, or the connection is lost. Then the
    /// connection is closed.
    pub(crate) fn serve(mut self, jobs: &Receiver<Job>) {
        for Job { work, end } in jobs {
            // A closure's panic is caught where it runs. This is for destructors of its results.
            let done = catch_unwind(AssertUnwindSafe(|| work(&mut self)));
            if done.is_err() {
                self.lose();
            }
            drop(end);
            if self.state.lost.load(Ordering::Relaxed) {
                break;
            }
        }
    }

    /// Runs a closure, which may leave a transaction open.
    pub(crate) fn call<T, E: 'static>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<T, E>,
    ) -> Result<T, Error<E>> {
        if self.brake.is_pulled() {
            self.brake.let_go();
            return Err(Error::Lost);
        }
        let worked = catch_unwind(AssertUnwindSafe(|| work(&mut self.connection)));
        self.brake.let_go();
        let result = self.judge(worked);
        self.note_transaction();
        result
    }

    /// Runs a closure, and rolls back whatever it has left open.
    pub(crate) fn read<T, E: 'static>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<T, E>,
    ) -> Result<T, Error<E>> {
        let result = self.call(work);
        self.roll_back();
        result
    }

    /// Runs a closure in a transaction. It commits if the closure succeeds before its caller gives
    /// up.
    pub(crate) fn write<T, E: 'static>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, Error<E>> {
        let worked = in_transaction(&mut self.connection, &self.brake, work);
        let cut_off = self.brake.let_go();
        let result = match worked {
            Err(error) => Err(Error::Transaction(error)),
            Ok(None) => Err(Error::Lost),
            Ok(Some(worked)) => self.judge(worked).and_then(|value| match cut_off {
                true => Err(Error::Lost),
                false => self.commit().map(|()| value),
            }),
        };
        self.roll_back();
        result
    }

    /// Fails if the connection is dead.
    pub(crate) fn check(&mut self) -> rusqlite::Result<()> {
        let probed = probe(&self.connection);
        self.brake.let_go();
        probed
    }

    /// Rolls back, and replaces a connection whose session was changed: SQLite has no reset.
    pub(crate) fn clean(&mut self) -> rusqlite::Result<()> {
        self.brake.let_go();
        self.roll_back();
        if self.state.changed.load(Ordering::Relaxed) {
            self.connection = open(&self.template, self.role, &self.state, &self.brake)?;
            // Only now, because the end of the old connection is a change, too.
            self.state.changed.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns the outcome of a closure. A connection is lost by a panic, and by an error that
    /// tells that it cannot be trusted.
    fn judge<T, E: 'static>(&self, worked: Worked<T, E>) -> Result<T, Error<E>> {
        match worked {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                self.doubt(of_closure(&error));
                Err(Error::Closure(error))
            }
            Err(panic) => {
                self.lose();
                Err(Error::Panicked(message(&*panic)))
            }
        }
    }

    fn commit<E>(&self) -> Result<(), Error<E>> {
        self.connection.execute_batch("COMMIT").map_err(|error| {
            self.doubt(Some(&error));
            Error::Transaction(error)
        })
    }

    fn roll_back(&self) {
        if !self.connection.is_autocommit() && self.connection.execute_batch("ROLLBACK").is_err() {
            self.lose();
        }
        self.note_transaction();
    }

    fn doubt(&self, error: Option<&rusqlite::Error>) {
        if error.is_some_and(|error| classify(error).poisons()) {
            self.lose();
        }
    }

    fn lose(&self) {
        self.state.lost.store(true, Ordering::Relaxed);
    }

    fn note_transaction(&self) {
        let open = !self.connection.is_autocommit();
        self.state.in_transaction.store(open, Ordering::Relaxed);
    }
}

/// Opens the connection of this thread, and watches it. It blocks.
fn open(
    template: &Template,
    role: Role,
    state: &State,
    brake: &Arc<Brake>,
) -> rusqlite::Result<Connection> {
    let connection = template.open(role, |connection| {
        busy::begin(connection, brake, template.busy_timeout)?;
        watch::begin(connection, &state.changed, brake)
    })?;
    brake.fit(connection.get_interrupt_handle());
    Ok(connection)
}

type Worked<T, E> = thread::Result<Result<T, E>>;

/// Runs a closure in a transaction, and leaves that open. Returns `None` if the caller has given up
/// before.
fn in_transaction<T, E>(
    connection: &mut Connection,
    brake: &Brake,
    work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
) -> rusqlite::Result<Option<Worked<T, E>>> {
    let mut transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    let worked = match brake.is_pulled() {
        true => None,
        false => Some(catch_unwind(AssertUnwindSafe(|| work(&mut transaction)))),
    };
    // Only now, because the closure may set a behaviour, too.
    transaction.set_drop_behavior(DropBehavior::Ignore);
    Ok(worked)
}

/// Returns the text of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}
