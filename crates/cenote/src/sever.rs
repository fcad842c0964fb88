//! Severing: cutting the resources of a closed pool whose holders do not come to an end.

use crate::manager::Manager;
use crate::pool::Pool;

/// Cuts one resource from outside. It comes from [`Manager::severer`], and is dropped when the
/// resource leaves the pool. [`Pool::sever`] has an example.
pub type Severer = Box<dyn FnOnce() + Send>;

impl<M: Manager + 'static> Pool<M> {
    /// Cuts the resources of a closed pool that are still lent, by their
    /// [severers](Manager::severer), and returns how many. Their holders get errors from the
    /// resource, and end their leases as after any other error. No lease is taken away.
    ///
    /// The pool never does this by itself. Call it when the time of
    /// [`close_within`](Pool::close_within) was not enough. It does nothing on an open pool, and
    /// nothing for a manager without severers. It reaches the [annex](Pool::annex), too.
    ///
    /// ```
    /// # use std::io;
    /// # use std::net::{Shutdown, TcpListener, TcpStream};
    /// # use std::time::Duration;
    /// use cenote::{Manager, Pool, Severer};
    ///
    /// struct Sockets(std::net::SocketAddr);
    ///
    /// impl Manager for Sockets {
    ///     type Resource = TcpStream;
    ///     type Error = io::Error;
    ///
    ///     async fn open(&self) -> io::Result<TcpStream> {
    ///         TcpStream::connect(self.0) // a real one would not block
    ///     }
    ///
    ///     fn severer(&self, socket: &mut TcpStream) -> Option<Severer> {
    ///         let socket = socket.try_clone().ok()?;
    ///         Some(Box::new(move || drop(socket.shutdown(Shutdown::Both))))
    ///     }
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::io::Read;
    /// let server = TcpListener::bind("127.0.0.1:0")?; // it never answers
    /// let pool = Pool::builder(Sockets(server.local_addr()?)).build()?;
    /// let mut socket = pool.acquire().await?;
    /// let reader = std::thread::spawn(move || socket.read(&mut [0]));
    ///
    /// let left = pool.close_within(Duration::from_millis(20)).await;
    /// assert_eq!(left.leases.len(), 1, "it waits for the server");
    /// assert_eq!(pool.sever(), 1);
    /// assert_eq!(reader.join().unwrap()?, 0, "the end of the stream");
    /// assert!(pool.close_within(Duration::from_secs(5)).await.is_empty());
    /// # Ok(()) }
    /// ```
    pub fn sever(&self) -> usize {
        self.sum(|part| part.shared.sever(), |pool, annex| pool + annex)
    }
}
