//! One connection through a proxy: two sockets, a pump for each direction, and an end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::faults::{Cut, Faults};
use super::pump::Pump;

/// What a proxy has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted so far.
    pub accepted: u64,
    /// Connections that have not ended. During a stall, the proxy does not notice that a side has
    /// closed.
    pub alive: u64,
    /// Bytes delivered to the server.
    pub to_server: u64,
    /// Bytes delivered to the clients.
    pub to_client: u64,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    accepted: AtomicU64,
    ended: AtomicU64,
    /// In the order of [`Faults::lanes`].
    bytes: [AtomicU64; 2],
}

impl Tally {
    pub(super) fn counts(&self) -> Counts {
        // `ended` is read first, so that it never exceeds `accepted`.
        let ended = self.ended.load(Ordering::SeqCst);
        let accepted = self.accepted.load(Ordering::SeqCst);
        Counts {
            accepted,
            alive: accepted - ended,
            to_server: self.bytes[0].load(Ordering::SeqCst),
            to_client: self.bytes[1].load(Ordering::SeqCst),
        }
    }
}

/// Accepts connections until this future or the proxy is dropped.
pub(super) async fn take_connections(
    listener: TcpListener,
    target: SocketAddr,
    mut faults: watch::Receiver<Faults>,
    tally: Arc<Tally>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = dropped(&mut faults) => return,
        };
        let Ok((client, _)) = accepted else {
            // The process is out of file descriptors. To ask again at once would only burn the
            // processor.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let number = tally.accepted.fetch_add(1, Ordering::SeqCst);
        let alive = Alive(Arc::clone(&tally));
        tokio::spawn(carry(number, client, target, faults.clone(), alive));
    }
}

/// Serves a connection from its first byte to its end.
async fn carry(
    number: u64,
    mut client: TcpStream,
    target: SocketAddr,
    mut faults: watch::Receiver<Faults>,
    alive: Alive,
) {
    let mut commands = faults.clone();
    if faults.borrow_and_update().black_hole {
        let cut = cut(number, &mut commands).await;
        return end(cut, client, None, alive, commands).await;
    }
    let connected = tokio::select! {
        connected = TcpStream::connect(target) => connected.map_err(|_| Some(Cut::Reset)),
        cut = cut(number, &mut commands) => Err(cut),
    };
    let mut server = match connected {
        Ok(server) => server,
        Err(cut) => return end(cut, client, None, alive, commands).await,
    };
    // Only the proxy delays bytes, not the kernel. This fails only on a dead socket, which the
    // pumps notice.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));

    let ended = {
        let ((from_client, to_client), (from_server, to_server)) = (client.split(), server.split());
        let [bytes_up, bytes_down] = &alive.0.bytes;
        let up = Pump::new(number, 0, faults.clone(), bytes_up);
        let down = Pump::new(number, 1, faults, bytes_down);
        tokio::select! {
            cut = cut(number, &mut commands) => cut,
            done = async {
                tokio::try_join!(up.run(from_client, to_server), down.run(from_server, to_client))
            } => done.err(),
        }
    };
    end(ended, client, Some(server), alive, commands).await;
}

/// Ends both sides in the same way. `None` means that both have ended by themselves or that the
/// proxy is gone.
async fn end(
    cut: Option<Cut>,
    mut client: TcpStream,
    mut server: Option<TcpStream>,
    alive: Alive,
    mut faults: watch::Receiver<Faults>,
) {
    let mut sides: Vec<&mut TcpStream> = [&mut client].into_iter().chain(&mut server).collect();
    match cut {
        None => {}
        Some(Cut::Reset) => {
            for side in sides {
                // This fails only on a dead socket.
                let _ = reset_at_close(side);
            }
        }
        Some(Cut::Close) => {
            for side in &mut sides {
                // This fails only on a dead socket.
                let _ = side.shutdown().await;
            }
            drop(alive);
            // A socket that is dropped with unread bytes sends a reset. So the rest is read until
            // the other side closes too.
            let drained = async {
                for side in sides {
                    drain(side).await;
                }
            };
            tokio::select! {
                () = drained => {}
                () = dropped(&mut faults) => {}
            }
        }
    }
}

/// Makes the socket send a reset when it is dropped.
#[allow(
    deprecated,
    reason = "its successor is missing in the oldest tokio that this crate builds with"
)]
fn reset_at_close(side: &TcpStream) -> io::Result<()> {
    side.set_linger(Some(Duration::ZERO))
}

async fn drain(side: &mut (impl AsyncRead + Unpin)) {
    let mut unread = [0; 4096];
    while matches!(side.read(&mut unread).await, Ok(1..)) {}
}

/// Waits until the connection is to be cut. Returns `None` if the proxy is dropped.
async fn cut(number: u64, faults: &mut watch::Receiver<Faults>) -> Option<Cut> {
    loop {
        match faults.borrow_and_update().cut {
            Some((before, cut)) if number < before => return Some(cut),
            _ => {}
        }
        faults.changed().await.ok()?;
    }
}

async fn dropped(faults: &mut watch::Receiver<Faults>) {
    while faults.changed().await.is_ok() {}
}

/// Counts a connection as alive until it is dropped.
struct Alive(Arc<Tally>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}
