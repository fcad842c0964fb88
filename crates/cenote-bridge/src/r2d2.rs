//! The bridge for managers of r2d2, whose calls block.

use std::error::Error;
use std::fmt;
use std::future;
use std::io;
use std::ops::{Deref, DerefMut};
use std::panic;
use std::sync::Arc;

use cenote::error::ErrorClass;
use cenote::{LeaseEnd, Manager};
use r2d2::{CustomizeConnection, ManageConnection};
use tokio::task::spawn_blocking;

/// Why the connection is there: a check that is cut off leaves none, and the pool closes such a
/// resource.
const THERE: &str = "a connection whose check was cut off is closed, not used";

/// A manager of r2d2 in cenote's pool.
///
/// `connect`, `is_valid` and the destructor of a connection run on the threads that tokio keeps for
/// blocking calls. `has_broken` is asked at every return, on the thread of the caller, and before
/// an idle connection is lent. A lease is used where the caller is: an async caller that blocks for
/// long moves it into `spawn_blocking`. A caller without a runtime uses `Pool::acquire_blocking`.
///
/// ```
/// use cenote::Pool;
/// use cenote_bridge::R2d2;
///
/// struct Words;
///
/// impl r2d2::ManageConnection for Words {
///     type Connection = String;
///     type Error = std::io::Error;
///
///     fn connect(&self) -> std::io::Result<String> {
///         Ok("hello".to_owned()) // a real one blocks
///     }
///
///     fn is_valid(&self, _: &mut String) -> std::io::Result<()> {
///         Ok(())
///     }
///
///     fn has_broken(&self, word: &mut String) -> bool {
///         word.is_empty()
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::builder(R2d2::new(Words)).max_size(1).build()?;
/// pool.acquire().await?.clear(); // broken now
/// assert_eq!(**pool.acquire().await?, *"hello", "it is another one");
/// # Ok(()) }
/// ```
///
/// A blocking call cannot be cancelled. After `open_timeout`, `check_timeout` or `close_timeout`
/// the pool goes on without it, but its thread stays until the call returns.
#[derive(Debug)]
pub struct R2d2<M: ManageConnection> {
    /// The threads for blocking calls share it.
    manager: Arc<M>,
    customizer: Option<Arc<dyn CustomizeConnection<M::Connection, M::Error>>>,
}

impl<M: ManageConnection> R2d2<M> {
    /// Wraps a manager of r2d2.
    pub fn new(manager: M) -> Self {
        Self {
            manager: Arc::new(manager),
            customizer: None,
        }
    }

    /// Sets what is done with each new connection and with each that is closed, as the method of
    /// r2d2's builder does. It runs on the threads for blocking calls.
    pub fn connection_customizer(
        mut self,
        customizer: Box<dyn CustomizeConnection<M::Connection, M::Error>>,
    ) -> Self {
        self.customizer = Some(customizer.into());
        self
    }

    /// Returns the manager of r2d2.
    pub fn original(&self) -> &M {
        &self.manager
    }
}

impl<M> Manager for R2d2<M>
where
    M: ManageConnection,
    M::Error: Send + Sync,
{
    type Resource = R2d2Connection<M::Connection>;
    type Error = M::Error;

    async fn open(&self) -> Result<Self::Resource, M::Error> {
        let manager = Arc::clone(&self.manager);
        let customizer = self.customizer.clone();
        let opened = off_thread(move || {
            let mut connection = manager.connect()?;
            if let Some(customizer) = customizer {
                customizer.on_acquire(&mut connection)?;
            }
            Ok(connection)
        });
        Ok(R2d2Connection(Some(opened.await?)))
    }

    /// An `io::Error` among the causes has the class of its kind.
    fn classify(&self, error: &M::Error) -> ErrorClass {
        let mut next: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(error) = next {
            if let Some(io) = error.downcast_ref::<io::Error>() {
                return ErrorClass::of_io(io);
            }
            next = error.source();
        }
        ErrorClass::Other
    }

    async fn check(&self, resource: &mut Self::Resource) -> Result<(), M::Error> {
        let manager = Arc::clone(&self.manager);
        // The thread must own the connection, because this future may be dropped before the thread
        // is done. The connection is then closed by the thread.
        let mut connection = resource.0.take().expect(THERE);
        let (connection, valid) = off_thread(move || {
            let valid = manager.is_valid(&mut connection);
            (connection, valid)
        })
        .await;
        resource.0 = Some(connection);
        valid
    }

    fn is_broken(&self, resource: &mut Self::Resource, _: LeaseEnd) -> bool {
        match &mut resource.0 {
            Some(connection) => self.manager.has_broken(connection),
            None => true,
        }
    }

    async fn close(&self, resource: Self::Resource) -> Result<(), M::Error> {
        let customizer = self.customizer.clone();
        off_thread(move || {
            if let (Some(connection), Some(customizer)) = (resource.0, customizer) {
                customizer.on_release(connection);
            }
        })
        .await;
        Ok(())
    }
}

/// A connection of an r2d2 manager. It dereferences to the connection itself, so that methods are
/// called on the lease as before. A function that wants a `&mut C` gets `&mut **lease`.
pub struct R2d2Connection<C>(Option<C>);

impl<C> R2d2Connection<C> {
    /// Takes the connection out for good, after `Lease::detach`.
    pub fn take(mut this: Self) -> C {
        this.0.take().expect(THERE)
    }
}

impl<C> Deref for R2d2Connection<C> {
    type Target = C;

    fn deref(&self) -> &C {
        self.0.as_ref().expect(THERE)
    }
}

impl<C> DerefMut for R2d2Connection<C> {
    fn deref_mut(&mut self) -> &mut C {
        self.0.as_mut().expect(THERE)
    }
}

impl<C: fmt::Debug> fmt::Debug for R2d2Connection<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(connection) => connection.fmt(f),
            None => f.write_str("a connection whose check was cut off"),
        }
    }
}

/// Runs a blocking call on a thread for such calls. A panic of the call continues here, where the
/// pool contains it.
async fn off_thread<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(call).await {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => panic::resume_unwind(panic),
            // The runtime shuts down and has not begun the call. It drops this future next.
            Err(_) => future::pending().await,
        },
    }
}
