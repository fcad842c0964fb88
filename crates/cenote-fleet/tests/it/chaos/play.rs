//! A play: six processes, a server, and faults that are drawn from one number.

use std::time::Duration;

use cenote_servers::Server;
use fastrand::Rng;
use tokio::time::{Instant, sleep};
use tokio_postgres::{Client, NoTls};

use super::crew::Hand;
use super::watch::{Seen, Watch};
use super::{CAPACITY, TTL};

const HANDS: usize = 6;

/// The limit that the server itself has for the role of the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wall {
    None,
    Capacity,
}

pub(super) struct Play {
    rng: Rng,
    server: Server,
    url: String,
    watch: Watch,
    hands: Vec<Place>,
    /// An older row, to be set back.
    old: Option<(i64, Vec<u8>)>,
    began: Instant,
}

/// A process, and when its fault ends.
struct Place {
    hand: Hand,
    until: Option<(Instant, Fault)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Killed,
    Stopped,
    CutOff,
}

#[expect(clippy::disallowed_methods, reason = "the ban guards the pool")]
fn now() -> Instant {
    Instant::now()
}

async fn admin(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

impl Play {
    pub(super) async fn begin(wall: Wall) -> Self {
        let named = std::env::var("CENOTE_SEED");
        let named = named.ok().and_then(|text| text.parse().ok());
        let seed = named.unwrap_or_else(|| fastrand::u64(..1 << 32));
        println!("CENOTE_SEED={seed}, {wall:?}");
        let server = cenote_servers::postgres::start().unwrap();
        let limit = match wall {
            Wall::None => -1,
            Wall::Capacity => CAPACITY as i32,
        };
        let sql = format!(
            "create role app login connection limit {limit}; \
             grant create on schema public to app; \
             grant execute on function pg_control_system() to app"
        );
        admin(server.url()).await.batch_execute(&sql).await.unwrap();
        let url = server.url().replace("postgres@", "app@");
        let mut hands = Vec::new();
        for nth in 0..HANDS {
            let hand = match nth {
                0 => Hand::start_off(&url, "+1h", CAPACITY, TTL).await,
                1 => Hand::start_off(&url, "-1h", CAPACITY, TTL).await,
                _ => Hand::start(&url, CAPACITY, TTL).await,
            };
            hands.push(Place { hand, until: None });
        }
        let mut hours = Vec::new();
        for place in &hands {
            hours.push(place.hand.joined().await);
        }
        assert!(hours[0] > hours[2] && hours[1] < hours[2], "{hours:?}");
        Self {
            rng: Rng::with_seed(seed),
            watch: Watch::at(server.url()).await,
            server,
            url,
            hands,
            old: None,
            began: now(),
        }
    }

    fn say(&self, what: &str) {
        println!("{:>6} ms: {what}", self.began.elapsed().as_millis());
    }

    /// Draws faults for so long.
    pub(super) async fn faults(&mut self, long: Duration) {
        let ends = now() + long;
        for place in &mut self.hands {
            place.hand.order("work 20");
        }
        while now() < ends {
            sleep(Duration::from_millis(self.rng.u64(50..600))).await;
            self.end_faults(false).await;
            self.trouble().await;
        }
    }

    async fn trouble(&mut self) {
        let nth = self.rng.usize(..HANDS);
        let until = now() + Duration::from_millis(self.rng.u64(200..8000));
        let place = &mut self.hands[nth];
        let is_free = place.until.is_none();
        match self.rng.u8(..20) {
            0..3 if is_free => {
                place.hand.kill();
                place.until = Some((until.min(now() + TTL / 2), Fault::Killed));
                self.say(&format!("{nth} is killed"));
            }
            3..6 if is_free => {
                place.hand.stop();
                place.until = Some((until, Fault::Stopped));
                self.say(&format!("{nth} is stopped"));
            }
            6..8 if is_free => {
                place.hand.cut_off();
                place.until = Some((until, Fault::CutOff));
                self.say(&format!("{nth} is cut off"));
            }
            8 if is_free => {
                place.hand.reset();
                self.say(&format!("{nth} loses its connections"));
            }
            9..16 if is_free => {
                let demand = [0, 1, 5, 20, 60][self.rng.usize(..5)];
                place.hand.order(&format!("work {demand}"));
                self.say(&format!("{nth} wants {demand}"));
            }
            16 => {
                let row = "select version, cell from cenote_fleet";
                let row = admin(self.server.url()).await.query_opt(row, &[]).await;
                self.old = row.unwrap().map(|row| (row.get(0), row.get(1)));
            }
            17 => {
                let wipe = "delete from cenote_fleet";
                admin(self.server.url())
                    .await
                    .batch_execute(wipe)
                    .await
                    .unwrap();
                self.say("the row is wiped");
            }
            18 => {
                if let Some((version, cell)) = self.old.take() {
                    let sql = "update cenote_fleet set version = $1, cell = $2";
                    let admin = admin(self.server.url()).await;
                    admin.execute(sql, &[&version, &cell]).await.unwrap();
                    self.say("the row is an old one");
                }
            }
            19 if self.rng.u8(..3) == 0 => {
                self.server.restart().unwrap();
                self.watch.go_on().await;
                self.say("the server has restarted");
            }
            _ => {}
        }
    }

    /// Ends the faults that are over, or all.
    async fn end_faults(&mut self, is_all: bool) {
        for nth in 0..HANDS {
            let place = &mut self.hands[nth];
            let Some((_, fault)) = place.until.take_if(|(at, _)| is_all || *at <= now()) else {
                continue;
            };
            match fault {
                Fault::Stopped => place.hand.go_on(),
                Fault::CutOff => place.hand.heal(),
                Fault::Killed => {
                    place.hand = Hand::start(&self.url, CAPACITY, TTL).await;
                    place.hand.order("work 20");
                }
            }
            self.say(&format!("{nth} is not {fault:?} any more"));
        }
    }

    /// Ends all faults, and waits until every member is served and knows the others.
    pub(super) async fn heal(&mut self) {
        self.end_faults(true).await;
        for place in &mut self.hands {
            place.hand.order("work 20");
        }
        for place in &mut self.hands {
            let hand = &mut place.hand;
            hand.until("all are here", |told| {
                told.members == HANDS && told.share > 0
            })
            .await;
            let before = hand.tell().await.served;
            hand.until("it is served", |told| told.served > before + 5)
                .await;
            let told = hand.tell().await;
            assert_eq!(told.failed, 0, "{told:?}");
        }
    }

    /// Returns what the observer has seen.
    pub(super) async fn end(self) -> Seen {
        self.watch.seen()
    }
}
