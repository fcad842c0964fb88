//! Real pools and real shells by seed: the server never has more sessions than the capacity, and
//! every caller is served in the end.
//!
//! Each process has a runtime with a clock of its own, which runs a tenth too fast or too slow at
//! most. Lines to the engine are cut, fail, are slow, and lose requests and answers; the cell is
//! wiped. In every second play the server has a limit of its own, and processes are stopped for up
//! to two TTLs. A process that goes on may open before it sees that its share is gone: only such
//! opens may be refused by the limit.
//!
//! `CENOTE_SEED=S` plays one seed again, and `CENOTE_SEEDS=N` plays the first `N / 10`.

mod process;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote_fleet::Memory;
use fastrand::Rng;
use process::Process;

use crate::rig::Rig;
use crate::sim::server::Server;

const SEEDS: u64 = 1500;

const TTL: Duration = Duration::from_secs(5);

/// Faults come for so long.
const FAULTS: Duration = Duration::from_secs(20);

/// Without faults all callers are served within this.
const PEACE: Duration = Duration::from_secs(90);

#[test]
fn real_pools_keep_to_the_capacity_by_seed() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seeds = match number("CENOTE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("CENOTE_SEEDS").map_or(SEEDS, |seeds: u64| seeds.div_ceil(10)),
    };
    for seed in seeds {
        if seed.is_multiple_of(1000) {
            println!("seed {seed}"); // a long run says how far it is
        }
        if let Err(broken) = World::new(seed).play() {
            panic!("CENOTE_SEED={seed}: {broken}");
        }
    }
}

#[test]
fn a_canceller_that_is_not_counted_breaks_the_cap_of_real_pools() {
    let plays = (0..100).map(|seed| {
        let world = World::new(seed);
        for process in &world.processes {
            world.rig.server().open(process.id());
        }
        world.play()
    });

    let broken: Vec<_> = plays.filter_map(Result::err).collect();

    assert!(
        broken.iter().any(|it| it.contains("sessions of")),
        "{broken:?}"
    );
}

struct World {
    rng: Rng,
    rig: Rig,
    capacity: u32,
    /// The server has a limit of its own, and processes are stopped.
    is_walled: bool,
    processes: Vec<Process>,
    now: Duration,
    /// A process was stopped.
    has_stopped: bool,
}

impl World {
    fn new(seed: u64) -> Self {
        let is_walled = seed.is_multiple_of(2);
        fastrand::seed(seed); // the jitter of the shells, and lost letters
        let mut rng = Rng::with_seed(seed);
        let capacity = rng.u32(4..14);
        let server = Server::new(is_walled.then_some(capacity));
        let rig = Rig {
            server: Arc::new(Mutex::new(server)),
            memory: Memory::new(),
            can_count: true,
        };
        let start = |_| Process::start(&rig, capacity, &mut rng);
        let processes = (0..2 + seed % 3).map(start).collect();
        Self {
            rng,
            rig,
            capacity,
            is_walled,
            processes,
            now: Duration::ZERO,
            has_stopped: false,
        }
    }

    fn play(mut self) -> Result<(), String> {
        while self.now < FAULTS {
            if self.rng.u8(..40) == 0 {
                self.meddle();
            }
            self.tick()?;
        }
        self.processes.iter_mut().for_each(Process::heal);
        while !self.processes.iter().all(Process::is_done) {
            if self.now > FAULTS + PEACE {
                return Err("a caller was forgotten".to_owned());
            }
            self.tick()?;
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<(), String> {
        let time = Duration::from_millis(self.rng.u64(5..45));
        let first = self.rng.usize(..self.processes.len());
        self.processes.rotate_left(first);
        for process in &mut self.processes {
            process.pass(self.now, time);
        }
        self.now += time;
        let (peak, refused) = (self.rig.peak(), self.rig.server().refused);
        let (capacity, now) = (self.capacity, self.now);
        if peak > capacity {
            return Err(format!("{peak} sessions of {capacity} at {now:?}"));
        }
        match refused > 0 && !self.has_stopped {
            true => Err(format!("an open was refused at {now:?}")),
            false => Ok(()),
        }
    }

    fn meddle(&mut self) {
        let (rng, now) = (&mut self.rng, self.now);
        let nth = rng.usize(..self.processes.len());
        let process = &mut self.processes[nth];
        let line = &process.line;
        match rng.u8(..10) {
            0 | 1 => line.is_cut.store(true, Ordering::Relaxed),
            2..5 => process.heal(),
            5 => line.fails.store(true, Ordering::Relaxed),
            6 => line.latency.store(rng.u64(..300), Ordering::Relaxed),
            7 => line.lost.store(rng.u64(..300), Ordering::Relaxed),
            8 => self.rig.memory.overwrite(None),
            _ if self.is_walled => {
                process.stopped_until = now + 2 * TTL.mul_f64(rng.f64());
                self.has_stopped = true;
            }
            _ => {}
        }
    }
}
