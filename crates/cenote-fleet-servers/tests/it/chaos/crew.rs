//! The processes of a fleet, seen from their parent: it steers, stops, cuts off and kills them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use cenote_testkit::{Proxy, Way};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::CAPACITY;
use super::database::Wall;
use super::member::ORDERS;
use super::stage::{Engine, Stage};

/// What must happen happens before this, also on a busy machine.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// The name of the test that is the member.
const MEMBER: &str = "chaos::member::a_member_is_a_process_of_its_own";

/// A process, and the network between it and the servers. It is killed when it is dropped.
pub(super) struct Hand {
    child: Child,
    orders: Option<ChildStdin>,
    lines: UnboundedReceiver<String>,
    /// One to the database, and one to the engine if that is another server.
    proxies: Vec<Proxy>,
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
    /// Starts a process behind proxies of its own. It joins in the background.
    pub(super) async fn start(stage: &Stage, ttl: Duration) -> Self {
        let program = std::env::current_exe().unwrap();
        Self::start_by(Command::new(program), stage, ttl).await
    }

    /// The same with a wall clock that is off.
    pub(super) async fn start_off(stage: &Stage, offset: &str, ttl: Duration) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        cenote_servers::faketime::set(&mut command, offset).unwrap();
        Self::start_by(command, stage, ttl).await
    }

    async fn start_by(mut command: Command, stage: &Stage, ttl: Duration) -> Self {
        let ttl = ttl.as_millis();
        let mut orders = format!("{CAPACITY} {ttl} {}", stage.is_counted());
        let mut proxies = Vec::new();
        for url in stage.urls() {
            let proxy = Proxy::to_url(&url).await.unwrap();
            orders = format!("{orders} {}", proxy.url(&url));
            proxies.push(proxy);
        }
        command.args(["--exact", MEMBER, "--nocapture"]);
        command.env(ORDERS, orders);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (orders, said) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, lines) = unbounded_channel();
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
            proxies,
        }
    }

    pub(super) fn order(&mut self, order: &str) {
        // A process that was stopped reads it later.
        let orders = self.orders.as_mut().unwrap();
        writeln!(orders, "{order}").unwrap();
    }

    /// Waits for a line that begins with this word, and returns the rest of it.
    pub(super) async fn hear(&mut self, word: &str) -> String {
        let heard = tokio::time::timeout(LIMIT, async {
            loop {
                let line = self.lines.recv().await.expect("the member runs");
                if line.starts_with("failed") {
                    println!("{line}");
                } else if let Some(rest) = line.strip_prefix(word) {
                    break rest.trim().to_owned();
                }
            }
        });
        heard.await.unwrap_or_else(|_| panic!("never: {word}"))
    }

    /// Waits until it has joined. Returns its wall clock.
    pub(super) async fn joined(&mut self) -> u64 {
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

    /// To the database alone, to the engine alone, or to both: no byte passes, and no connection is
    /// closed.
    pub(super) fn cut_off(&self, lines: usize) {
        self.of(lines).for_each(|proxy| proxy.stall(Way::Both));
    }

    /// The connections of these lines are reset.
    pub(super) fn reset(&self, lines: usize) {
        self.of(lines).for_each(Proxy::reset);
    }

    /// Returns one line, or all if there is no such line.
    fn of(&self, lines: usize) -> impl Iterator<Item = &Proxy> {
        let all = self.proxies.iter().enumerate();
        let is_meant = move |nth: usize| nth == lines || lines >= self.proxies.len();
        all.filter(move |(nth, _)| is_meant(*nth))
            .map(|(_, proxy)| proxy)
    }

    pub(super) fn heal(&self) {
        self.proxies.iter().for_each(|proxy| proxy.heal().unwrap());
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
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let stage = Stage::build(Engine::Postgres, Wall::Capacity).await;
        let mut hand = Hand::start(&stage, Duration::from_secs(10)).await;
        hand.joined().await;

        hand.order("work 60");
        hand.until("it is served", |told| told.served > 100).await;

        let told = hand.tell().await;
        let share = CAPACITY - 2; // its control connection, and a place for one that joins
        assert_eq!((told.failed, told.share, told.members), (0, share, 1));
        hand.leave().await;
    });
}
