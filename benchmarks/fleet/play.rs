//! A play: six processes of one system on a server of their own, and a load that moves from one
//! process to the next.

use std::thread::sleep;
use std::time::Duration;

use cenote_benchmarks::harness::report::machine;

use crate::clock::now;
use crate::crew::{Crew, Heard};
use crate::observer::{Observer, Seen};
use crate::place::Place;
use crate::system::{PROCESSES, System};

/// Requests per second of the busy process: half of what the capacity could serve.
pub(crate) const RATE: f64 = 1000.0;

/// Requests per second of the busy process while it asks for more than the capacity could serve.
pub(crate) const FULL_RATE: f64 = 2500.0;

/// Requests per second of each other process.
pub(crate) const LOW_RATE: f64 = 5.0;

/// All processes have the low rate first, so that each has a session.
const WARM_UP: Duration = Duration::from_secs(1);

/// Requests that are under way at the end are done after this time.
const REST: Duration = Duration::from_millis(300);

/// What happens at the beginning of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A process becomes busy.
    Busy,
    /// It asks for more than the capacity.
    Full,
    /// The load moves to another process.
    Move,
    /// The busy process is killed, and another one has its load.
    Kill,
}

/// What happens, which process is busy from then on, and its rate.
pub(crate) const PLAN: [(What, usize, f64); 8] = [
    (What::Busy, 0, RATE),
    (What::Full, 0, FULL_RATE),
    (What::Move, 1, RATE),
    (What::Move, 2, RATE),
    (What::Move, 3, RATE),
    (What::Kill, 4, RATE),
    (What::Kill, 5, RATE),
    (What::Kill, 0, RATE),
];

/// A part of a play, between two times of the clock of all processes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub(crate) what: What,
    pub(crate) busy: usize,
    pub(crate) rate: f64,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

/// All that was seen of a play.
pub(crate) struct Story {
    pub(crate) system: System,
    pub(crate) stretches: Vec<Stretch>,
    /// What each process has told.
    pub(crate) heard: Vec<Heard>,
    pub(crate) seen: Seen,
    /// The sessions that the server has refused.
    pub(crate) refused: usize,
    /// The load of the machine in the last minute of the play.
    pub(crate) load: String,
}

/// Plays, with stretches of this length.
pub(crate) fn play(system: System, stretch: Duration) -> Result<Story, String> {
    let place = Place::start(system)?;
    let mut crew = Crew::start(system, &place.url())?;
    for process in 0..PROCESSES {
        crew.load(process, LOW_RATE)?;
    }
    sleep(WARM_UP);
    let observer = Observer::start(place.admin_url());
    let mut stretches: Vec<Stretch> = Vec::new();
    for (what, busy, rate) in PLAN {
        let from = now();
        let before = stretches.last().map(|stretch| stretch.busy);
        match before.filter(|before| *before != busy) {
            Some(before) if what == What::Kill => crew.kill(before)?,
            Some(before) => crew.load(before, LOW_RATE)?,
            None => {}
        }
        crew.load(busy, rate)?;
        sleep(stretch);
        stretches.push(Stretch {
            what,
            busy,
            rate,
            from,
            to: now(),
        });
    }
    sleep(REST);
    Ok(Story {
        system,
        stretches,
        seen: observer.finish()?,
        heard: crew.finish(),
        refused: place.refused(),
        load: machine::load(),
    })
}
