//! A play: six processes, a server, and faults that are drawn from one number.

use std::time::Duration;

use fastrand::Rng;
use tokio::time::{Instant, sleep};

use super::TTL;
use super::crew::Hand;
use super::database::Wall;
use super::stage::{Engine, Old, Stage};
use super::watch::{Seen, Watch};

const HANDS: usize = 6;

pub(super) struct Play {
    rng: Rng,
    stage: Stage,
    watch: Watch,
    hands: Vec<Place>,
    /// An older cell, to be put back.
    old: Option<Old>,
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

impl Play {
    pub(super) async fn begin(engine: Engine, wall: Wall) -> Self {
        let named = std::env::var("CENOTE_SEED");
        let named = named.ok().and_then(|text| text.parse().ok());
        let seed = named.unwrap_or_else(|| fastrand::u64(..1 << 32));
        println!("CENOTE_SEED={seed}, {engine:?}, {wall:?}");
        let stage = Stage::build(engine, wall).await;
        let mut hands = Vec::new();
        for nth in 0..HANDS {
            let hand = match nth {
                0 => Hand::start_off(&stage, "+1h", TTL).await,
                1 => Hand::start_off(&stage, "-1h", TTL).await,
                _ => Hand::start(&stage, TTL).await,
            };
            hands.push(Place { hand, until: None });
        }
        let mut clocks = Vec::new();
        for place in &mut hands {
            clocks.push(place.hand.joined().await);
        }
        let half = 1800; // they joined within half an hour
        let (fast, slow, right) = (clocks[0], clocks[1], clocks[2]);
        assert!(fast > right + half && slow + half < right, "{clocks:?}");
        Self {
            rng: Rng::with_seed(seed),
            watch: Watch::at(&stage.database).await,
            stage,
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
        let lines = self.rng.usize(..3);
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
                place.hand.cut_off(lines);
                place.until = Some((until, Fault::CutOff));
                self.say(&format!("{nth} is cut off"));
            }
            8 if is_free => {
                place.hand.reset(lines);
                self.say(&format!("{nth} loses its connections"));
            }
            9..16 if is_free => {
                let demand = [0, 1, 5, 20, 60][self.rng.usize(..5)];
                place.hand.order(&format!("work {demand}"));
                self.say(&format!("{nth} wants {demand}"));
            }
            16 => self.old = self.stage.save().await,
            17 => {
                self.stage.wipe().await;
                self.say("the cell is wiped");
            }
            18 => {
                if let Some(old) = self.old.take() {
                    self.stage.put_back(&old).await;
                    self.say("the cell is an old one");
                }
            }
            19 => match self.rng.u8(..6) {
                0 | 1 => {
                    self.stage.restart();
                    self.watch.go_on(&self.stage.database).await;
                    self.say("the engine has restarted");
                }
                2 => {
                    self.stage.database.restart();
                    self.watch.go_on(&self.stage.database).await;
                    self.say("the database has restarted");
                }
                _ => {}
            },
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
                    place.hand = Hand::start(&self.stage, TTL).await;
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
    pub(super) fn end(self) -> Seen {
        self.watch.seen()
    }
}
