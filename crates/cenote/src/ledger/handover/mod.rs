//! An exhaustive model of the hand-over: waiters that stay or leave, a lease that ends, an open, a
//! close, the breaker and the alarm, in every order of their steps.
//!
//! The ledger and the mailboxes are the real ones, behind the lock of the model. Each program has a
//! pool of one resource and two to four threads, each of which makes one or two calls. So the
//! number of orders is finite, and all of them are played. After every step the world checks that
//! no outcome and no wake-up is lost (`world.rs`). At the end it checks that the resource is in one
//! place, and that the next waiters find no mail of earlier ones (`ending.rs`).

mod ending;
mod programs;
mod schedule;
mod waiter;
mod world;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::{fmt, thread as std_thread};

use shuttle::thread;

use crate::breaker::BreakerState;
use schedule::exhaust;
use waiter::Script;
use world::World;

/// The act of a thread that does not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// The lease ends before the deadlines.
    Give,
    /// The lease ends after the deadlines.
    GiveLate,
    Open,
    FailOpen,
    Close,
    Trip,
    TripAndClose,
    /// The breaker trips, and is reset at once.
    TripAndReset,
    /// The alarm goes off after the deadlines.
    Alarm,
    /// The alarm wakes the waiters, so that they look again.
    Look,
    /// The waiters are woken to do owed work.
    Help,
}

impl Act {
    fn run(self, world: &World) {
        let (early, late) = (world.early(), world.late());
        use Act::*;
        match self {
            Give => world.end_lease(early),
            GiveLate => world.end_lease(late),
            Open => world.opened(early),
            FailOpen => world.open_failed(early),
            Close => world.close(early),
            Trip => world.set_breaker(BreakerState::Inactive, early),
            TripAndClose => {
                world.set_breaker(BreakerState::Inactive, early);
                world.close(early);
            }
            TripAndReset => {
                world.set_breaker(BreakerState::Inactive, early);
                world.set_breaker(BreakerState::Active, early);
            }
            Alarm => world.alarm(late),
            Look => world.alarm(world.later()),
            Help => world.call_helpers(early),
        }
    }
}

#[derive(Clone)]
struct Program {
    waiters: Vec<Script>,
    acts: Vec<Act>,
}

impl Program {
    fn play(&self) -> usize {
        let program = self.clone();
        exhaust(move || program.run())
    }

    fn run(&self) {
        let opens = self
            .acts
            .iter()
            .any(|act| matches!(act, Act::Open | Act::FailOpen));
        let world = Arc::new(World::new(!opens));
        let joined = self.waiters.iter().map(|script| {
            let waiter = (!script.newcomer).then(|| world.join(script));
            (waiter, *script)
        });
        let joined: Vec<_> = joined.collect();
        if opens {
            world.begin_open();
        }
        let waiters = joined.into_iter().map(|(waiter, script)| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let waiter = waiter.unwrap_or_else(|| world.join(&script));
                if waiter.end().is_none() {
                    waiter.run(&world, &script);
                }
            })
        });
        let mut threads: Vec<_> = waiters.collect();
        threads.extend(self.acts.iter().copied().map(|act| {
            let world = Arc::clone(&world);
            thread::spawn(move || act.run(&world))
        }));
        for thread in threads {
            thread.join().expect("a model ends with its first panic");
        }
        world.end();
    }
}

/// Plays programs on all cores, and prints how many orders they have.
fn play(title: &str, programs: Vec<Program>) {
    static IN_ALL: AtomicUsize = AtomicUsize::new(0);
    let count = programs.len();
    let orders = AtomicUsize::new(0);
    let left = Mutex::new(programs);
    let next = || left.lock().ok()?.pop();
    let cores = std_thread::available_parallelism().map_or(1, usize::from);
    std_thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(program) = next() {
                    let played = program.play();
                    println!("{played:>9} orders of {program}");
                    orders.fetch_add(played, Ordering::Relaxed);
                }
            });
        }
    });
    let orders = orders.into_inner();
    let in_all = IN_ALL.fetch_add(orders, Ordering::Relaxed) + orders;
    println!("{orders:>9} orders of {count} programs: {title}; {in_all} in all so far");
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for script in &self.waiters {
            write!(f, "{script}, ")?;
        }
        write!(f, "{:?}", self.acts)
    }
}
