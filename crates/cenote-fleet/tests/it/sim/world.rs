//! The world of a play: time, letters, faults, and the oracle of the cap.

use std::collections::VecDeque;

use cenote_fleet::protocol::MemberId;
use fastrand::Rng;

use super::plan::{Bug, Plan, Sight, TTL};
use super::process::{Process, Reply, Request};
use super::server::Server;

/// The time between two looks at the world, in milliseconds.
pub(crate) const TICK: u64 = 20;

/// Faults come for so long, in milliseconds.
const FAULTS: u64 = 45_000;

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) rng: Rng,
    pub(crate) now: u64,
    pub(crate) server: Server,
    pub(crate) processes: Vec<Process>,
    letters: VecDeque<Letter>,
    /// The engine answers no letter before this time.
    pub(super) engine_down_until: u64,
    /// How often a process was stopped.
    pub(crate) stops: u32,
    /// What has happened, if it is to be told.
    pub(crate) story: Option<Vec<String>>,
}

struct Letter {
    at: u64,
    who: MemberId,
    number: u64,
    what: What,
}

enum What {
    Request(Request),
    /// The count of a read whose cell was read a moment ago.
    Count(Reply),
    Reply(Reply),
}

impl World {
    pub(crate) fn new(seed: u64, bug: Option<Bug>, story: Option<Vec<String>>) -> Self {
        let mut rng = Rng::with_seed(seed);
        let plan = Plan::draw(&mut rng, bug);
        let wall = (plan.sight == Sight::Walled).then_some(plan.capacity);
        let processes = (0..plan.processes)
            .map(|_| Process::new(&plan, 0, &mut rng))
            .collect();
        Self {
            plan,
            rng,
            now: 0,
            server: Server::new(wall),
            processes,
            letters: VecDeque::new(),
            engine_down_until: 0,
            stops: 0,
            story,
        }
    }

    pub(crate) fn run(&mut self) -> Result<(), String> {
        while self.now < FAULTS {
            if self.rng.u32(..self.plan.calm) == 0 {
                self.trouble();
            }
            self.tick()?;
        }
        self.finale()
    }

    /// All faults are over, and letters are fast.
    pub(crate) fn heal(&mut self) {
        self.tell(|| "the faults are over".to_owned());
        (self.plan.lost, self.plan.slow) = (0, 20);
        self.engine_down_until = 0;
        for process in &mut self.processes {
            (process.stopped_until, process.cut_until) = (0, 0);
        }
    }

    pub(crate) fn tick(&mut self) -> Result<(), String> {
        self.now += TICK;
        let refused = self.server.refused;
        for nth in 0..self.processes.len() {
            self.act(nth);
        }
        // Opens are refused while the processes act. One that is told now that it has left had its
        // control connection until then.
        let mut joining = match self.server.refused > refused {
            true => self.joining(),
            false => 0,
        };
        self.deliver();
        for process in self.processes.iter().filter(|process| process.is_gone) {
            self.server.end_all_of(process.id);
        }
        self.processes.retain(|process| !process.is_gone);
        let (sessions, capacity) = (self.server.count(), self.plan.capacity);
        if sessions <= capacity && self.server.refused == refused {
            return Ok(());
        }
        let counts = self.server.counts();
        joining = joining.max(self.joining());
        if joining > 0 {
            self.server.refused = refused; // a control connection more has taken the place
        } else if self.server.refused > refused {
            self.tell(|| format!("an open is refused: {counts:?}"));
        }
        match sessions <= capacity + joining {
            true => Ok(()),
            false => Err(format!(
                "O1 cap: {sessions} sessions of {capacity} at {} ms: {counts:?}",
                self.now
            )),
        }
    }

    /// The control connections of processes without a share, beyond the one that has its place. A
    /// process that is held may have been buried.
    fn joining(&self) -> u32 {
        let (controlled, counts): (Vec<_>, _) =
            (self.server.controlled().collect(), self.server.counts());
        let joins = |process: &&Process| {
            let has_no_share = process.pool.is_held || process.pool.max_size == 0;
            has_no_share && controlled.contains(&process.id) && counts[&process.id] == 1
        };
        let joining = self.processes.iter().filter(joins).count() as u32;
        joining.saturating_sub(1)
    }

    fn act(&mut self, nth: usize) {
        let process = &mut self.processes[nth];
        if !process.runs(self.now) {
            return;
        }
        let (now, plan) = (self.now, &self.plan);
        process.keep_demand(now);
        let is_on = process.keep_control(now, plan, &mut self.server, &mut self.rng);
        let goes_on = process.keep_cap(now, plan, &mut self.rng);
        let who = (plan, process.id);
        let pool = &mut process.pool;
        pool.tick(now, who, &mut self.server, goes_on, &mut self.rng);
        if !is_on {
            return;
        }
        if let Some((number, request)) = process.begin(self.now, &self.plan) {
            self.send(nth, number, What::Request(request));
        }
    }

    fn send(&mut self, nth: usize, number: u64, what: What) {
        let process = &self.processes[nth];
        let is_cut = self.now < process.cut_until || self.now < self.engine_down_until;
        if is_cut || self.rng.u32(..1000) < self.plan.lost {
            return;
        }
        self.post(process.id, number, what);
    }

    fn post(&mut self, who: MemberId, number: u64, what: What) {
        let at = self.now + self.rng.u64(..self.plan.slow);
        self.letters.push_back(Letter {
            at,
            who,
            number,
            what,
        });
    }

    fn deliver(&mut self) {
        for _ in 0..self.letters.len() {
            let Some(letter) = self.letters.pop_front() else {
                break;
            };
            if letter.at > self.now {
                self.letters.push_back(letter);
                continue;
            }
            let Letter {
                who, number, what, ..
            } = letter;
            match what {
                What::Request(request) => self.answer(who, number, request),
                What::Count(reply) => self.count(who, number, reply),
                What::Reply(reply) => self.arrive(who, number, reply),
            }
        }
    }

    fn answer(&mut self, who: MemberId, number: u64, request: Request) {
        match request {
            Request::Read => {
                let Server {
                    origin, version, ..
                } = self.server;
                let cell = self.server.cell.clone();
                let reply = Reply::Read {
                    origin,
                    version,
                    cell,
                    counts: None,
                };
                self.post(who, number, What::Count(reply));
            }
            Request::Swap { version, cell } => {
                let members = self.story.is_some().then(|| cell.members.clone());
                let is_won = self.server.swap(version, cell);
                self.tell(|| format!("{who} swaps at {version}, {is_won}: {members:?}"));
                self.reply(who, number, Reply::Swap { is_won });
            }
            Request::Fence(members) => {
                self.tell(|| format!("{who} fences {members:?}"));
                members
                    .into_iter()
                    .for_each(|id| self.server.end_all_of(id));
            }
        }
    }

    fn count(&mut self, who: MemberId, number: u64, mut reply: Reply) {
        if let Reply::Read { counts, .. } = &mut reply {
            *counts = self.plan.can_count().then(|| self.server.counts());
            if self.plan.bug == Some(Bug::BuriedUncounted) {
                let controlled: Vec<_> = self.server.controlled().collect();
                let counts = counts.iter_mut();
                counts.for_each(|counts| counts.retain(|id, _| controlled.contains(id)));
            }
        }
        self.reply(who, number, reply);
    }

    fn reply(&mut self, who: MemberId, number: u64, reply: Reply) {
        if let Some(nth) = self.processes.iter().position(|process| process.id == who) {
            self.send(nth, number, What::Reply(reply));
        }
    }

    /// A letter arrives. A process that is stopped reads it later.
    fn arrive(&mut self, who: MemberId, number: u64, reply: Reply) {
        let Some(nth) = self.processes.iter().position(|process| process.id == who) else {
            return;
        };
        let process = &mut self.processes[nth];
        if !process.runs(self.now) {
            let at = process.stopped_until;
            let what = What::Reply(reply);
            self.letters.push_back(Letter {
                at,
                who,
                number,
                what,
            });
            return;
        }
        let (sent, nudges) = process.take((number, reply), self.now, &self.plan, &mut self.rng);
        for (number, request) in sent {
            self.send(nth, number, What::Request(request));
        }
        for other in (0..self.processes.len()).filter(|other| nudges && *other != nth) {
            self.send(other, 0, What::Reply(Reply::Nudge));
        }
    }

    pub(crate) fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(format!("{:>6} {}", self.now, line()));
        }
    }

    /// Lets so many milliseconds pass.
    pub(crate) fn pass(&mut self, milliseconds: u64) -> Result<(), String> {
        let until = self.now + milliseconds;
        while self.now < until {
            self.tick()?;
        }
        Ok(())
    }

    /// The longest time in which a silent member is buried, or a cell is learned.
    pub(crate) fn burial() -> u64 {
        u64::from(TTL) * 10 / 9 + 1000
    }
}
