//! A TCP proxy whose network misbehaves on command: it is slow, stalls, cuts, loses one direction,
//! refuses or stays silent.

mod faults;
mod link;
mod pump;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpSocket, ToSocketAddrs, lookup_host};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use faults::{Cut, Faults, Lane, Limit, SlowStart};
use link::Tally;

pub use faults::{Then, Way};
pub use link::Counts;

/// Longer than a test's burst of new connections.
const BACKLOG: u32 = 1024;

/// A proxy on a free loopback port. It passes bytes to a server and back until it is told to
/// misbehave.
///
/// Every fault can be switched on and off at any time. Unless its doc says otherwise, a fault
/// affects all connections, present and future. Faults add up. Dropping the proxy ends its
/// connections and frees its port. The proxy waits in real time, so it does not fit a paused clock.
///
/// ```
/// use std::time::Duration;
///
/// use cenote_testkit::{Proxy, Way};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use tokio::net::{TcpListener, TcpStream};
/// use tokio::time::timeout;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// let server = TcpListener::bind("127.0.0.1:0").await?;
/// let proxy = Proxy::to(server.local_addr()?).await?;
/// let mut client = TcpStream::connect(proxy.addr()).await?;
/// let (mut served, _) = server.accept().await?;
///
/// proxy.stall(Way::ToServer);
/// client.write_all(b"hello").await?;
/// let mut heard = [0; 5];
/// let waited = timeout(Duration::from_millis(50), served.read_exact(&mut heard)).await;
/// assert!(waited.is_err(), "nothing arrives, and nothing is closed");
///
/// proxy.resume(Way::ToServer);
/// served.read_exact(&mut heard).await?;
/// assert_eq!(&heard, b"hello");
/// assert_eq!(proxy.counts().alive, 1);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Proxy {
    target: SocketAddr,
    addr: SocketAddr,
    faults: watch::Sender<Faults>,
    tally: Arc<Tally>,
    /// The task that accepts connections. While there is none, new connections are refused.
    doorman: Mutex<Option<JoinHandle<()>>>,
    /// Bound, but never listening. It reserves the port while new connections are refused.
    _port: TcpSocket,
}

impl Proxy {
    /// Starts a proxy in front of `target`. The server may start later: until then the proxy resets
    /// the connections that it accepts.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn to(target: impl ToSocketAddrs) -> io::Result<Self> {
        let mut addresses = lookup_host(target).await?;
        let target = addresses
            .next()
            .ok_or_else(|| io::Error::other("the target has no address"))?;
        let port = reuse_port((Ipv4Addr::LOCALHOST, 0).into())?;
        let proxy = Self {
            target,
            addr: port.local_addr()?,
            faults: watch::Sender::default(),
            tally: Arc::default(),
            doorman: Mutex::default(),
            _port: port,
        };
        proxy.open_door()?;
        Ok(proxy)
    }

    /// Starts a proxy in front of the server that a URL names: `scheme://user@host:port/path`. The
    /// URL must have a port.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn to_url(url: &str) -> io::Result<Self> {
        Self::to(split_url(url).1).await
    }

    /// Returns the address of the proxy. It does not change.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the URL with its host and port replaced by those of the proxy.
    ///
    /// # Panics
    /// If the URL has no `://`.
    pub fn url(&self, original: &str) -> String {
        let (before, _, after) = split_url(original);
        format!("{before}{}{after}", self.addr)
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> Counts {
        self.tally.counts()
    }

    /// Delays every chunk by `delay`. Zero ends the delay.
    pub fn delay(&self, way: Way, delay: Duration) {
        self.change_lanes(way, |lane| lane.delay = delay);
    }

    /// Holds all bytes in that direction, and the end of the stream too. Nothing is closed and
    /// nothing is lost.
    pub fn stall(&self, way: Way) {
        self.change_lanes(way, |lane| lane.stalled = true);
    }

    /// Ends a stall. The held bytes go on.
    pub fn resume(&self, way: Way) {
        self.change_lanes(way, |lane| {
            lane.stalled = false;
            lane.limit = lane.limit.filter(|limit| limit.then != Then::Stall);
        });
    }

    /// Makes connections half-open: all bytes in that direction are lost, and so is the end of the
    /// stream. The other direction still works. A connection that has lost bytes stays deaf in that
    /// direction for good, because its stream has a hole.
    pub fn lose(&self, way: Way) {
        self.change_lanes(way, |lane| lane.lossy = true);
    }

    /// As [`lose`](Proxy::lose), for the present connections only: a firewall that has forgotten
    /// them.
    pub fn forget(&self, way: Way) {
        let before = self.tally.counts().accepted;
        self.change_lanes(way, |lane| lane.deaf_before = before);
    }

    /// As [`stall`](Proxy::stall), for the present connections only, and until
    /// [`heal`](Proxy::heal): bytes pile up at their sender.
    pub fn freeze(&self, way: Way) {
        let before = self.tally.counts().accepted;
        self.change_lanes(way, |lane| lane.frozen_before = before);
    }

    /// Lets each connection pass `bytes` more in that direction and then applies `then` to it. With
    /// zero bytes that happens at once. A new connection counts from its start.
    pub fn after(&self, way: Way, bytes: u64, then: Then) {
        self.faults.send_modify(|faults| {
            faults.limits += 1;
            let serial = faults.limits;
            let limit = Limit {
                serial,
                bytes,
                then,
            };
            faults.change_lanes(way, |lane| lane.limit = Some(limit));
        });
    }

    /// Slows the handshake of new connections: each chunk among the first `bytes` of either
    /// direction is delayed by `delay`.
    pub fn slow_start(&self, bytes: u64, delay: Duration) {
        let from = self.tally.counts().accepted;
        self.faults.send_modify(|faults| {
            faults.slow_start = SlowStart { bytes, delay, from };
        });
    }

    /// Ends every present connection with a reset (RST), for both sides.
    pub fn reset(&self) {
        self.cut(Cut::Reset);
    }

    /// Ends every present connection in good order (FIN), for both sides.
    pub fn close(&self) {
        self.cut(Cut::Close);
    }

    /// Accepts new connections, and never reads from them or answers them, for as long as they
    /// last.
    pub fn black_hole(&self) {
        self.faults.send_modify(|faults| faults.black_hole = true);
    }

    /// Refuses new connections. The port stays reserved.
    ///
    /// # Cancel safety
    /// If the future is dropped midway, new connections are refused a little later.
    pub async fn refuse(&self) {
        let doorman = self.lock_doorman().take();
        if let Some(doorman) = doorman {
            doorman.abort();
            // The task was told to end, so its result says nothing.
            let _ = doorman.await;
        }
    }

    /// Ends every fault. Held bytes go on. Lost bytes, cut connections and connections in the black
    /// hole stay as they are.
    pub fn heal(&self) -> io::Result<()> {
        self.faults.send_modify(Faults::heal);
        self.open_door()
    }

    fn open_door(&self) -> io::Result<()> {
        let mut doorman = self.lock_doorman();
        if doorman.is_none() {
            let listener = reuse_port(self.addr)?.listen(BACKLOG)?;
            let (faults, tally) = (self.faults.subscribe(), Arc::clone(&self.tally));
            let work = link::take_connections(listener, self.target, faults, tally);
            *doorman = Some(tokio::spawn(work));
        }
        Ok(())
    }

    fn lock_doorman(&self) -> std::sync::MutexGuard<'_, Option<JoinHandle<()>>> {
        self.doorman.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change_lanes(&self, way: Way, change: impl Fn(&mut Lane)) {
        self.faults
            .send_modify(|faults| faults.change_lanes(way, change));
    }

    fn cut(&self, cut: Cut) {
        let before = self.tally.counts().accepted;
        self.faults
            .send_modify(|faults| faults.cut = Some((before, cut)));
    }
}

/// Binds a socket to this address. Several sockets may be bound to it, and one of them may listen.
/// The system does not give this port to a program that asks for any free port.
fn reuse_port(addr: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    Ok(socket)
}

/// Splits a URL into the part before host and port, host and port, and the rest.
fn split_url(url: &str) -> (&str, &str, &str) {
    let start = match url.find("://") {
        Some(at) => at + "://".len(),
        None => panic!("`{url}` is no URL: it has no `://`"),
    };
    let end = url[start..]
        .find(['/', '?', '#'])
        .map_or(url.len(), |at| start + at);
    let host = url[..end].rfind('@').map_or(start, |at| at + 1);
    (&url[..host], &url[host..end], &url[end..])
}
