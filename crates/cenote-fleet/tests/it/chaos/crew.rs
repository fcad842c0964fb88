//! The processes of a fleet, seen from their parent: it steers, stops, cuts off and kills them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use cenote_testkit::{Proxy, Way};

use super::member::ORDERS;

/// What must happen happens before this, also on a busy machine.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// The name of the test that is the member.
const MEMBER: &str = "chaos::member::a_member_is_a_process_of_its_own";

/// A process, and the network between it and the server. It is killed when it is dropped.
pub(super) struct Hand {
    child: Child,
    orders: Option<ChildStdin>,
    lines: Receiver<String>,
    proxy: Proxy,
}

/// What a member tells of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub(super) served: u64,
    pub(super) failed: u64,
    pub(super) share: u32,
    pub(super) members: usize,
}

impl Hand {
    /// Starts a process behind a proxy of its own. It joins in the background.
    pub(super) async fn start(url: &str, capacity: u32, ttl: Duration) -> Self {
        let program = std::env::current_exe().unwrap();
        Self::start_by(Command::new(program), url, capacity, ttl).await
    }

    /// The same with a wall clock that is off.
    pub(super) async fn start_off(url: &str, offset: &str, capacity: u32, ttl: Duration) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        cenote_servers::faketime::set(&mut command, offset).unwrap();
        Self::start_by(command, url, capacity, ttl).await
    }

    async fn start_by(mut command: Command, url: &str, capacity: u32, ttl: Duration) -> Self {
        let proxy = Proxy::to_url(url).await.unwrap();
        let orders = format!("{} {capacity} {}", proxy.url(url), ttl.as_millis());
        command.args(["--exact", MEMBER, "--nocapture"]);
        command.env(ORDERS, orders);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (orders, said) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(said).lines().map_while(Result::ok) {
                // The harness of the tests speaks, too, and does not end its line.
                let Some((_, line)) = line.split_once('@') else {
                    continue;
                };
                if sender.send(line.to_owned()).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            orders,
            lines,
            proxy,
        }
    }

    pub(super) fn order(&mut self, order: &str) {
        // A process that was stopped reads it later.
        let orders = self.orders.as_mut().unwrap();
        writeln!(orders, "{order}").unwrap();
    }

    /// Waits for a line that begins with this word, and returns the rest of it.
    pub(super) async fn hear(&self, word: &str) -> String {
        let heard = tokio::time::timeout(LIMIT, async {
            loop {
                match self.lines.recv_timeout(Duration::ZERO) {
                    Ok(line) if line.starts_with("failed") => println!("{line}"),
                    Ok(line) => match line.strip_prefix(word) {
                        Some(rest) => break rest.trim().to_owned(),
                        None => continue,
                    },
                    Err(RecvTimeoutError::Timeout) => {
                        tokio::time::sleep(Duration::from_millis(2)).await;
                    }
                    Err(RecvTimeoutError::Disconnected) => panic!("the member has ended"),
                }
            }
        });
        heard.await.unwrap_or_else(|_| panic!("never: {word}"))
    }

    pub(super) async fn joined(&self) -> u64 {
        self.hear("joined").await.parse().unwrap()
    }

    pub(super) async fn tell(&mut self) -> Told {
        self.order("tell");
        let told = self.hear("told").await;
        let numbers: Vec<u64> = told.split(' ').map(|word| word.parse().unwrap()).collect();
        let &[served, failed, share, members] = &numbers[..] else {
            panic!("{told}");
        };
        Told {
            served,
            failed,
            share: share as u32,
            members: members as usize,
        }
    }

    /// Waits until the member tells something.
    pub(super) async fn until(&mut self, what: &str, holds: impl Fn(Told) -> bool) {
        let told = tokio::time::timeout(LIMIT, async {
            while !holds(self.tell().await) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        assert!(told.await.is_ok(), "never: {what}");
    }

    pub(super) fn stop(&self) {
        self.signal("STOP");
    }

    pub(super) fn go_on(&self) {
        self.signal("CONT");
    }

    pub(super) fn kill(&self) {
        self.signal("KILL");
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &pid])
            .status();
        assert!(sent.unwrap().success(), "kill -{name} {pid}");
    }

    /// No byte passes, and no connection is closed.
    pub(super) fn cut_off(&self) {
        self.proxy.stall(Way::Both);
    }

    /// All its connections are reset.
    pub(super) fn reset(&self) {
        self.proxy.reset();
    }

    pub(super) fn heal(&self) {
        self.proxy.heal().unwrap();
    }

    /// Lets it leave, and waits for its end.
    pub(super) async fn leave(mut self) {
        self.orders = None;
        self.hear("left").await;
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process joins, is served, and leaves.
pub(super) fn assert_one_process_is_served() {
    let server = cenote_servers::postgres::start().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut hand = Hand::start(server.url(), 9, Duration::from_secs(10)).await;
        hand.joined().await;

        hand.order("work 20");
        hand.until("it is served", |told| told.served > 100).await;

        let told = hand.tell().await;
        assert_eq!(
            (told.failed, told.share, told.members),
            (0, 7, 1),
            "{told:?}"
        );
        hand.leave().await;
    });
}
