//! A TCP proxy whose network misbehaves on command: slow, stalled, cut, half dead, refusing, silent.

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

/// Stands on a free loopback port in front of a server, and passes on what it is sent, until it is told to misbehave.
///
/// Every fault can be switched on and off at any time. Except where it says otherwise, it holds for the connections that are there and for
/// those to come. Faults add up. Dropping the proxy ends its connections and frees its port. It waits in real time: not for a paused clock.
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
    /// Takes new connections. Nobody there: they are refused.
    doorman: Mutex<Option<JoinHandle<()>>>,
    /// Bound and never listening: keeps the port ours while new connections are refused.
    _port: TcpSocket,
}

impl Proxy {
    /// In front of `target`, which need not be there yet. A connection is reset if it is not there when the connection comes.
    ///
    /// # Cancel safety
    /// Dropping it leaves nothing behind.
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

    /// In front of the server that a URL names: `scheme://user@host:port/path`. The port must be there.
    ///
    /// # Cancel safety
    /// Dropping it leaves nothing behind.
    pub async fn to_url(url: &str) -> io::Result<Self> {
        Self::to(split_url(url).1).await
    }

    /// Where it listens. It stays the same for its whole life.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL with its host and port replaced by those of the proxy.
    ///
    /// # Panics
    /// If it has no `://`.
    pub fn url(&self, original: &str) -> String {
        let (before, _, after) = split_url(original);
        format!("{before}{}{after}", self.addr)
    }

    /// What it has seen so far.
    pub fn counts(&self) -> Counts {
        self.tally.counts()
    }

    /// Every chunk on its way is held for `delay`. Zero is none.
    pub fn delay(&self, way: Way, delay: Duration) {
        self.change_lanes(way, |lane| lane.delay = delay);
    }

    /// Bytes stop that way, and so does the end of a stream. Nothing is closed and nothing is lost.
    pub fn stall(&self, way: Way) {
        self.change_lanes(way, |lane| lane.stalled = true);
    }

    /// Ends a stall: what was held goes on its way.
    pub fn resume(&self, way: Way) {
        self.change_lanes(way, |lane| {
            lane.stalled = false;
            lane.limit = lane.limit.filter(|limit| limit.then != Then::Stall);
        });
    }

    /// Half-open: what is sent that way is lost, the end of a stream included, and the other way works on. A connection that has lost
    /// something stays deaf that way for good, since its stream has a hole.
    pub fn lose(&self, way: Way) {
        self.change_lanes(way, |lane| lane.lossy = true);
    }

    /// Each connection passes `bytes` more that way, and then this happens to it; with zero it happens at once. A new connection counts from
    /// its start.
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

    /// Slow handshake: on new connections, each chunk among the first `bytes` of either way is held for `delay`.
    pub fn slow_start(&self, bytes: u64, delay: Duration) {
        let from = self.tally.counts().accepted;
        self.faults.send_modify(|faults| {
            faults.slow_start = SlowStart { bytes, delay, from };
        });
    }

    /// Ends every connection that is there with a reset (RST), for both sides.
    pub fn reset(&self) {
        self.cut(Cut::Reset);
    }

    /// Ends every connection that is there in good order (FIN), for both sides.
    pub fn close(&self) {
        self.cut(Cut::Close);
    }

    /// New connections are accepted, never read from and never answered, for as long as they last.
    pub fn black_hole(&self) {
        self.faults.send_modify(|faults| faults.black_hole = true);
    }

    /// New connections are refused. The port stays ours.
    ///
    /// # Cancel safety
    /// Dropped midway, new connections are refused a little later.
    pub async fn refuse(&self) {
        let doorman = self.lock_doorman().take();
        if let Some(doorman) = doorman {
            doorman.abort();
            // It was told to end: that it did is all there is to know.
            let _ = doorman.await;
        }
    }

    /// Ends every fault. What was held goes on its way; what was lost, cut or fell into the black hole stays so.
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

/// A socket on this address. Several may be bound to it, one of them may listen; nobody who asks for any free port is given this one.
fn reuse_port(addr: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    Ok(socket)
}

/// What comes before host and port, these, and what comes after.
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
