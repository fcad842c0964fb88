//! The session: a connection on a thread of its own, and the ways to call it.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;

use rusqlite::{Connection, Transaction};
use tokio::sync::oneshot;

use crate::brake::Brake;
use crate::desk::{Desk, Job, State};
use crate::error::{Error, SessionError};
use crate::file::File;
use crate::template::{Role, Template};

/// A connection that has a thread of its own. Closures run there, one after the other.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = cenote_rusqlite::Db::memory().build()?;
/// let mut lease = db.acquire().await?;
/// let sum: i64 = lease.call(|conn| conn.query_row("SELECT 1 + 1", [], |row| row.get(0))).await?;
/// assert_eq!(sum, 2);
/// # Ok(()) }
/// ```
pub struct Session {
    jobs: Sender<Job>,
    /// The end of the last job, unless it is known.
    running: Option<oneshot::Receiver<()>>,
    /// The end of the thread.
    ended: oneshot::Receiver<()>,
    file: Option<File>,
    state: Arc<State>,
    brake: Arc<Brake>,
}

impl Session {
    /// Runs a closure on the thread of the connection, and returns its result.
    ///
    /// A transaction that it begins may go on in the next call of the same lease. It is rolled back
    /// when the lease ends. If the closure panics, the caller is told and the connection is closed.
    ///
    /// # Cancel safety
    /// If the future is dropped before the closure has ended, its statement is interrupted, and so
    /// is each further statement of it. The connection is not lent again before the closure has
    /// ended.
    pub async fn call<T, E>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Error<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let answer = self.run(|desk| desk.call(work)).await;
        answer.unwrap_or(Err(Error::Lost))
    }

    /// As [`call`](Session::call), for threads. It blocks.
    ///
    /// # Panics
    /// In a task of a runtime, whose thread it would block.
    pub fn call_blocking<T, E>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Error<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        self.run_blocking(|desk| desk.call(work))
    }

    /// Starts the thread of a session, and waits for its connection.
    pub(crate) async fn open(template: Arc<Template>, role: Role) -> Result<Self, SessionError> {
        let (state, brake) = (Arc::<State>::default(), Arc::<Brake>::default());
        let (jobs, inbox) = mpsc::channel();
        let (opened, answer) = oneshot::channel();
        let (end, ended) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name(format!("sql {}", template.place.short_name()));
        let parts = (Arc::clone(&state), Arc::clone(&brake));
        let work = move || {
            let end = end; // dropped last
            let open = || Desk::open(template, role, parts.0, parts.1);
            // Without a receiver there is no session, so that `serve` ends at once.
            match catch_unwind(AssertUnwindSafe(open)) {
                Ok(Ok(desk)) => {
                    let _ = opened.send(Ok(Ok(desk.file())));
                    desk.serve(&inbox);
                }
                Ok(Err(error)) => drop(opened.send(Ok(Err(error)))),
                Err(panic) => drop(opened.send(Err(panic))),
            }
            drop(end);
        };
        thread.spawn(work).map_err(SessionError::Thread)?;
        let file = match answer.await.map_err(|_| SessionError::Lost)? {
            Ok(opened) => opened?,
            // The pool contains it, and tells its message.
            Err(panic) => resume_unwind(panic),
        };
        Ok(Self {
            jobs,
            running: None,
            ended,
            file,
            state,
            brake,
        })
    }

    /// Runs a closure that only reads.
    pub(crate) async fn read<T, E>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Error<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let answer = self.run(|desk| desk.read(work)).await;
        answer.unwrap_or(Err(Error::Lost))
    }

    /// Runs a closure in a transaction that writes.
    pub(crate) async fn write<T, E>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Error<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let answer = self.run(|desk| desk.write(work)).await;
        answer.unwrap_or(Err(Error::Lost))
    }

    /// Returns a job's result, or `None` if the thread has ended.
    pub(crate) async fn run<T: Send + 'static>(
        &mut self,
        job: impl FnOnce(&mut Desk) -> T + Send + 'static,
    ) -> Option<T> {
        self.settle().await;
        let cut = CutOff(Arc::clone(&self.brake));
        let answer = self.send(job).await;
        drop(cut);
        self.running = None;
        answer.ok()
    }

    /// As [`run`](Session::run), for threads.
    pub(crate) fn run_blocking<T, E>(
        &mut self,
        job: impl FnOnce(&mut Desk) -> Result<T, Error<E>> + Send + 'static,
    ) -> Result<T, Error<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        if let Some(running) = self.running.take() {
            let _ = running.blocking_recv();
        }
        let answer = self.send(job).blocking_recv();
        self.running = None;
        answer.unwrap_or(Err(Error::Lost))
    }

    /// Waits until a job that was cut off has ended.
    pub(crate) async fn settle(&mut self) {
        if let Some(running) = &mut self.running {
            // The sender is dropped at the end.
            let _ = running.await;
            self.running = None;
        }
    }

    /// Stops what runs, and waits until the connection is closed.
    pub(crate) async fn end(self) {
        self.brake.pull();
        drop(self.jobs);
        let _ = self.ended.await;
    }

    fn send<T: Send + 'static>(
        &mut self,
        job: impl FnOnce(&mut Desk) -> T + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (reply, answer) = oneshot::channel();
        let (end, running) = oneshot::channel::<()>();
        self.running = Some(running);
        self.brake.release();
        let work = Box::new(move |desk: &mut Desk| drop(reply.send(job(desk))));
        // A thread that has ended drops the job, and with it `reply`.
        let _ = self.jobs.send(Job { work, end });
        answer
    }

    pub(crate) fn brake(&self) -> Arc<Brake> {
        Arc::clone(&self.brake)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(crate) fn is_dirty(&self) -> bool {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        is(&self.state.in_transaction) || is(&self.state.changed)
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.state.lost.load(Ordering::Relaxed) || self.file.as_ref().is_some_and(File::is_gone)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("file", &self.file)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// Stops the running job when its caller gives up.
struct CutOff(Arc<Brake>);

impl Drop for CutOff {
    fn drop(&mut self) {
        self.0.pull();
    }
}
