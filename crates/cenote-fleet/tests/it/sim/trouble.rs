//! The faults of a play.

use cenote_fleet::protocol::{Cell, Epoch};

use super::plan::{Bug, MOST, Sight};
use super::process::Process;
use super::world::World;

impl World {
    /// Draws a fault.
    pub(super) fn trouble(&mut self) {
        let nth = self.rng.usize(..self.processes.len().max(1));
        let long = self.now + self.rng.u64(500..25_000);
        match self.rng.u8(..19) {
            0..3 => self.change_demand(nth),
            3..5 => self.stop(nth, long),
            5..8 => self.cut(nth, long),
            8 => self.kill(nth),
            9 | 10 if self.processes.len() < MOST => self.start(),
            11 => self.leave(nth),
            12 => self.lose_cell(),
            13 if self.plan.sight != Sight::Quiet => {
                self.tell(|| "the engine is down".to_owned());
                self.engine_down_until = self.now + self.rng.u64(500..8_000);
            }
            14 => self.server.back_up(),
            15 | 16 => self.lose_sessions(nth),
            17 => self.lose_all_sessions(),
            _ => {
                let rng = &mut self.rng;
                self.processes
                    .iter_mut()
                    .for_each(|process| process.set_wall_clock(rng));
            }
        }
    }

    pub(crate) fn change_demand(&mut self, nth: usize) {
        if let Some(process) = self.processes.get_mut(nth) {
            process.pool.demand = self.rng.u32(..self.plan.capacity * 2);
            let (id, demand) = (process.id, process.pool.demand);
            self.tell(|| format!("{id} wants {demand}"));
        }
    }

    fn stop(&mut self, nth: usize, until: u64) {
        let in_open = |process: &Process| !process.pool.opening.is_empty();
        let sight = self.plan.sight;
        if self.is_about_to_notice(nth) {
            return;
        }
        if let Some(process) = self.processes.get_mut(nth) {
            if !self.plan.can_count() || sight == Sight::Counted && in_open(process) {
                return;
            }
            process.stopped_until = until;
            let id = process.id;
            self.stops += 1;
            self.tell(|| format!("{id} is stopped until {until}"));
        }
    }

    /// A process that has lost its control connection, and is stopped or cut off before it notices,
    /// may open connections later. Only a limit of the server would refuse them.
    fn is_about_to_notice(&self, nth: usize) -> bool {
        let control = self.processes.get(nth).and_then(|process| process.control);
        control.is_some_and(|control| !self.server.is_alive(control))
    }

    fn cut(&mut self, nth: usize, until: u64) {
        if self.plan.sight == Sight::Quiet || self.is_about_to_notice(nth) {
            return;
        }
        if let Some(process) = self.processes.get_mut(nth) {
            process.cut_until = until;
            let id = process.id;
            self.tell(|| format!("{id} is cut off until {until}"));
        }
    }

    /// A process that lives loses its control connection, and maybe all others.
    fn lose_sessions(&mut self, nth: usize) {
        let is_all = self.rng.bool();
        let Some(process) = self.processes.get(nth).filter(|_| self.plan.can_count()) else {
            return;
        };
        // A process that is cut off as well would not notice.
        if self.now < process.cut_until || self.now < process.stopped_until {
            return;
        }
        let (id, control) = (process.id, process.control);
        self.tell(|| format!("{id} loses its sessions: all is {is_all}"));
        match is_all {
            true => {
                self.server.end_all_of(id);
                let at = self.now + self.rng.u64(500..2500);
                let process = &mut self.processes[nth];
                process.burst = Some((at, std::mem::take(&mut process.pool.demand)));
            }
            false => control.into_iter().for_each(|it| self.server.end(it)),
        }
    }

    /// The server restarts.
    fn lose_all_sessions(&mut self) {
        let is_cut = |process: &Process| self.now < process.cut_until.max(process.stopped_until);
        if self.plan.can_count() && !self.processes.iter().any(is_cut) {
            self.tell(|| "the server ends all sessions".to_owned());
            for process in &self.processes {
                self.server.end_all_of(process.id);
            }
        }
    }

    fn kill(&mut self, nth: usize) {
        if nth < self.processes.len() {
            let process = self.processes.swap_remove(nth);
            self.server.end_all_of(process.id);
            self.tell(|| format!("{} is killed", process.id));
        }
    }

    pub(crate) fn start(&mut self) {
        let process = Process::new(&self.plan, self.now, &mut self.rng);
        self.tell(|| format!("{} starts", process.id));
        self.processes.push(process);
    }

    fn leave(&mut self, nth: usize) {
        if let Some(process) = self.processes.get_mut(nth) {
            process.leaving = true;
            process.pool.demand = 0;
            let id = process.id;
            self.tell(|| format!("{id} leaves"));
        }
    }

    fn lose_cell(&mut self) {
        if self.rng.bool() {
            self.tell(|| "the engine is restored from an old state".to_owned());
            self.server.restore();
            return;
        }
        self.tell(|| "the engine is wiped".to_owned());
        let (origin, nonce) = (self.server.origin, self.rng.u64(..));
        let passes_for_new = self.plan.bug == Some(Bug::NoLearning);
        let cell = passes_for_new.then(|| Cell::new(Epoch { origin, nonce }));
        self.server.wipe(cell);
    }
}
