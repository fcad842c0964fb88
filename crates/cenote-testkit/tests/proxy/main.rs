//! The fault proxy keeps its promises: a plain client and a plain echo server see each fault, and
//! see that it is gone after `heal`.

mod cutting;
mod door;
mod holding;

use std::io;
use std::time::Duration;

use cenote_testkit::Proxy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Nothing on loopback takes that long, so bytes that have not come by then never come.
const LIMIT: Duration = Duration::from_secs(5);

/// Long enough for bytes that are not held to arrive.
const QUIET: Duration = Duration::from_millis(60);

/// A proxy in front of an echo server, which reports how each of its connections ended.
struct World {
    proxy: Proxy,
    ends: mpsc::UnboundedReceiver<Result<(), io::ErrorKind>>,
}

impl World {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let proxy = Proxy::to(listener.local_addr().expect("it is bound"))
            .await
            .expect("a free port");
        let (tell, ends) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let tell = tell.clone();
                tokio::spawn(async move { tell.send(echo(stream).await) });
            }
        });
        Self { proxy, ends }
    }

    /// Returns a world and a client that has made a round trip.
    async fn with_client() -> (Self, Client) {
        let world = Self::new().await;
        let mut client = world.connect().await;
        client.round_trip().await;
        (world, client)
    }

    async fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.proxy.addr()).await;
        Client(stream.expect("the proxy accepts"))
    }

    /// Returns how the server saw the next of its connections end.
    async fn server_saw(&mut self) -> Result<(), io::ErrorKind> {
        let end = timeout(LIMIT, self.ends.recv()).await;
        end.expect("the server's side ends")
            .expect("the server lives")
    }
}

async fn echo(mut stream: TcpStream) -> Result<(), io::ErrorKind> {
    let mut chunk = [0; 1024];
    loop {
        match stream.read(&mut chunk).await {
            Ok(0) => return Ok(()),
            Ok(read) => stream
                .write_all(&chunk[..read])
                .await
                .map_err(|it| it.kind())?,
            Err(error) => return Err(error.kind()),
        }
    }
}

struct Client(TcpStream);

impl Client {
    async fn say(&mut self, text: &str) {
        self.0
            .write_all(text.as_bytes())
            .await
            .expect("bytes leave");
    }

    /// Asserts that the next bytes are `text`.
    async fn hear(&mut self, text: &str) {
        let mut heard = vec![0; text.len()];
        let read = timeout(LIMIT, self.0.read_exact(&mut heard)).await;
        read.expect("bytes arrive in time").expect("bytes arrive");
        assert_eq!(String::from_utf8_lossy(&heard), text);
    }

    async fn round_trip(&mut self) {
        self.say("ping").await;
        self.hear("ping").await;
    }

    /// Asserts that nothing arrives and nothing ends.
    async fn hears_nothing(&mut self) {
        let mut byte = [0];
        let read = timeout(QUIET, self.0.read(&mut byte)).await;
        assert!(read.is_err(), "{read:?}");
    }

    /// Returns the rest of the stream, or how it was cut. `Ok` is a close in good order.
    async fn end(&mut self) -> Result<Vec<u8>, io::ErrorKind> {
        let mut rest = Vec::new();
        let read = timeout(LIMIT, self.0.read_to_end(&mut rest)).await;
        let read = read.expect("the stream ends");
        read.map(|_| rest).map_err(|error| error.kind())
    }
}

#[tokio::test]
async fn without_a_fault_bytes_pass_and_are_counted() {
    let mut world = World::new().await;
    let mut client = world.connect().await;

    client.round_trip().await;
    let open = world.proxy.counts();
    drop(client);

    assert_eq!((open.accepted, open.alive), (1, 1));
    assert_eq!((open.to_server, open.to_client), (4, 4));
    assert_eq!(world.server_saw().await, Ok(()));
    until("the connection has ended", || {
        world.proxy.counts().alive == 0
    })
    .await;
}

#[tokio::test]
async fn a_large_stream_passes_unharmed() {
    let world = World::new().await;
    let client = world.connect().await;
    let sent: Vec<u8> = (0..3_000_000_u32).map(|it| (it % 251) as u8).collect();
    let (mut from, mut to) = client.0.into_split();
    let bytes = sent.clone();

    tokio::spawn(async move {
        to.write_all(&bytes).await.unwrap();
    });
    let mut heard = vec![0; sent.len()];
    let read = timeout(LIMIT, from.read_exact(&mut heard)).await;

    read.unwrap().unwrap();
    assert!(heard == sent);
    assert_eq!(world.proxy.counts().to_client, 3_000_000);
}

#[tokio::test]
async fn the_proxy_replaces_host_and_port_in_a_url() {
    let proxy = Proxy::to_url("postgres://me:p%40ss@127.0.0.1:5432/db?a=b@c")
        .await
        .unwrap();
    let addr = proxy.addr();

    for (original, expected) in [
        ("redis://localhost", format!("redis://{addr}")),
        ("mysql://root@[::1]:3306", format!("mysql://root@{addr}")),
        (
            "postgres://me:p%40ss@127.0.0.1:5432/db?a=b@c",
            format!("postgres://me:p%40ss@{addr}/db?a=b@c"),
        ),
    ] {
        assert_eq!(proxy.url(original), expected);
    }
}

/// Waits for the effect of another task.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let waited = timeout(LIMIT, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    assert!(waited.await.is_ok(), "never: {what}");
}
