//! A connection that is lent to the threads for blocking calls, and comes back from them.

use std::any::Any;
use std::fmt;
use std::future;
use std::mem;
use std::panic;

use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

/// A connection of diesel whose calls run on another thread.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote::Pool;
/// use cenote_diesel::Blocking;
/// use cenote_diesel::diesel::{self, Connection, RunQueryDsl, SqliteConnection};
///
/// let pool = Pool::builder(Blocking::<SqliteConnection>::new(":memory:")).max_size(1).build()?;
/// let mut lease = pool.acquire().await?;
/// lease
///     .run(|connection| {
///         connection.transaction(|connection| {
///             diesel::sql_query("create table cart (item text)").execute(connection)?;
///             diesel::sql_query("insert into cart values ('tea')").execute(connection)
///         })
///     })
///     .await?;
/// # Ok(()) }
/// ```
pub struct BlockingConnection<C> {
    place: Place<C>,
}

enum Place<C> {
    Here(C),
    /// On a thread. The future that waited for it was dropped, or waits now.
    Away(JoinHandle<C>),
    /// A closure has panicked, or the runtime has shut down.
    Gone,
}

impl<C: Send + 'static> BlockingConnection<C> {
    pub(crate) fn new(connection: C) -> Self {
        Self {
            place: Place::Here(connection),
        }
    }

    /// Runs a closure with the connection on a thread for blocking calls, and returns its result.
    ///
    /// # Panics
    /// If the closure panics. The connection is then closed. Each later call panics, too. This
    /// needs a runtime of tokio.
    ///
    /// # Cancel safety
    /// If the future is dropped while the closure runs, the closure goes on. The next call, on this
    /// lease or on another, waits for its end. When the lease has ended, too, a transaction that
    /// the closure has left open is rolled back.
    pub async fn run<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut C) -> T + Send + 'static,
    ) -> T {
        match self.try_run(work).await {
            Some(value) => value,
            None => panic!("an earlier closure has panicked on this connection"),
        }
    }

    /// As [`run`](BlockingConnection::run). Returns `None` if the connection is gone.
    pub(crate) async fn try_run<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut C) -> T + Send + 'static,
    ) -> Option<T> {
        self.come_back().await.ok()?;
        let Place::Here(mut connection) = mem::replace(&mut self.place, Place::Gone) else {
            return None;
        };
        let (teller, told) = oneshot::channel();
        self.place = Place::Away(spawn_blocking(move || {
            // The caller may be gone.
            let _ = teller.send(work(&mut connection));
            connection
        }));
        if let Err(panic) = self.come_back().await {
            panic::resume_unwind(panic);
        }
        told.await.ok()
    }

    /// Waits until no closure runs. Fails with the panic of the closure.
    async fn come_back(&mut self) -> Result<(), Box<dyn Any + Send>> {
        if let Place::Away(thread) = &mut self.place {
            let ended = thread.await;
            self.place = Place::Gone;
            self.place = Place::Here(settled(ended).await?);
        }
        Ok(())
    }

    pub(crate) fn is_away(&self) -> bool {
        matches!(self.place, Place::Away(_))
    }

    pub(crate) fn here(&mut self) -> Option<&mut C> {
        match &mut self.place {
            Place::Here(connection) => Some(connection),
            Place::Away(_) | Place::Gone => None,
        }
    }

    /// Waits until no closure runs, and then closes the connection on a thread, because that may
    /// block.
    pub(crate) async fn close(mut self) {
        if self.come_back().await.is_ok() {
            off_thread(move || drop(self)).await;
        }
    }
}

impl<C> fmt::Debug for BlockingConnection<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.place {
            Place::Here(_) => "BlockingConnection(here)",
            Place::Away(_) => "BlockingConnection(on a thread)",
            Place::Gone => "BlockingConnection(gone)",
        })
    }
}

/// Runs a blocking call on a thread for such calls. A panic of the call continues here.
pub(crate) async fn off_thread<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    match settled(spawn_blocking(call).await).await {
        Ok(value) => value,
        Err(panic) => panic::resume_unwind(panic),
    }
}

async fn settled<T>(ended: Result<T, JoinError>) -> Result<T, Box<dyn Any + Send>> {
    match ended.map_err(JoinError::try_into_panic) {
        Ok(value) => Ok(value),
        Err(Ok(panic)) => Err(panic),
        // The runtime shuts down and has not begun the call. It drops this future next.
        Err(Err(_)) => future::pending().await,
    }
}
