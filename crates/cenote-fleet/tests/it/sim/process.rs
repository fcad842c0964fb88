//! A process of the play: a member with its pool and its clock, which runs its rounds by letters.

use std::time::Duration;

use cenote_fleet::protocol::{Cell, Counts, Load, Member, MemberId, Reading, Step};
use fastrand::Rng;

use super::plan::{Bug, Plan};
use super::pool::Pool;
use super::server::Server;

/// The time between two renewals, in milliseconds.
pub(crate) const RENEW: u64 = 1000;

/// A round that has no answer after so long is given up.
const PATIENCE: u64 = 900;

/// The longest time until a process notices that its control connection has ended.
const LONGEST_NOTICE: u64 = 150;

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) id: MemberId,
    pub(crate) member: Member,
    pub(crate) pool: Pool,
    clock: Clock,
    /// It does nothing before this time.
    pub(crate) stopped_until: u64,
    /// It has no line to the engine before this time.
    pub(crate) cut_until: u64,
    /// Its control connection. It may have ended.
    pub(crate) control: Option<u64>,
    /// When it notices that its control connection has ended.
    notices_at: Option<u64>,
    /// When its callers want how many connections again, after they have wanted none.
    pub(crate) burst: Option<(u64, u32)>,
    pub(crate) leaving: bool,
    pub(crate) is_gone: bool,
    round: Option<Round>,
    rounds: u64,
    next_at: u64,
    renewed_at: u64,
}

#[derive(Debug)]
struct Clock {
    /// In thousandths.
    rate: u64,
    /// Where the wall clock stands, beside the right time.
    pub(crate) wall_off: u64,
}

#[derive(Debug)]
struct Round {
    number: u64,
    asked: Duration,
    began: u64,
    step: Option<Step>,
}

/// A letter to the engine.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Read,
    Swap { version: u64, cell: Cell },
    Fence(Vec<MemberId>),
}

/// A letter to a process.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Read {
        origin: u64,
        version: u64,
        cell: Option<Cell>,
        counts: Option<Counts>,
    },
    Swap {
        is_won: bool,
    },
    Nudge,
}

/// A request and the number of the round that sends it.
pub(crate) type Sent = (u64, Request);

impl Process {
    pub(crate) fn new(plan: &Plan, now: u64, rng: &mut Rng) -> Self {
        let id = MemberId(rng.u64(..));
        let mut pool = Pool::new();
        pool.demand = rng.u32(..plan.capacity);
        Self {
            id,
            member: Member::new(id, plan.terms(rng)),
            pool,
            clock: Clock {
                rate: rng.u64(900..=1100),
                wall_off: 10_000_000,
            },
            stopped_until: 0,
            cut_until: 0,
            control: None,
            notices_at: None,
            burst: None,
            leaving: false,
            is_gone: false,
            round: None,
            rounds: 0,
            next_at: now + rng.u64(..200),
            renewed_at: 0,
        }
    }

    /// The time on its own clock. A member with the bug reads the wall clock instead.
    pub(crate) fn time(&self, now: u64, bug: Option<Bug>) -> Duration {
        let own = now * self.clock.rate / 1000;
        match bug {
            Some(Bug::WallClock) => Duration::from_millis(own + self.clock.wall_off),
            _ => Duration::from_millis(own),
        }
    }

    /// Its wall clock is set by up to half an hour.
    pub(crate) fn set_wall_clock(&mut self, rng: &mut Rng) {
        self.clock.wall_off = rng.u64(8_200_000..11_800_000);
    }

    pub(crate) fn runs(&self, now: u64) -> bool {
        now >= self.stopped_until
    }

    /// Looks after the control connection. Its end is noticed after a moment. Returns whether a
    /// round can begin.
    pub(crate) fn keep_control(
        &mut self,
        now: u64,
        plan: &Plan,
        server: &mut Server,
        rng: &mut Rng,
    ) -> bool {
        if !plan.can_count() {
            return true;
        }
        let is_alive = |control| server.is_alive(control);
        let can_notice = now >= self.cut_until;
        if can_notice && self.control.is_some_and(|control| !is_alive(control)) {
            let at = *self
                .notices_at
                .get_or_insert(now + rng.u64(..LONGEST_NOTICE));
            if now >= at {
                (self.control, self.notices_at) = (None, None);
                self.round = None;
                self.next_at = now + rng.u64(..2500);
                if plan.bug != Some(Bug::OpensWithoutControl) {
                    self.member.lost();
                }
            }
        }
        if self.control.is_none() && now >= self.next_at && now >= self.cut_until {
            self.control = server.open_control(self.id);
        }
        self.control.is_some()
    }

    /// Its callers may want connections again.
    pub(crate) fn keep_demand(&mut self, now: u64) {
        if let Some((_, demand)) = self.burst.take_if(|(at, _)| *at <= now) {
            self.pool.demand = demand;
        }
    }

    /// Puts the present cap in force, and returns whether the lease goes on.
    pub(crate) fn keep_cap(&mut self, now: u64, plan: &Plan, rng: &mut Rng) -> bool {
        let time = self.time(now, plan.bug);
        let max_size = self.member.max_size(time);
        self.pool.resize(max_size, now, rng);
        self.pool.is_held = self.member.is_held();
        let goes_on = time < self.member.lease_ends() || max_size > 0;
        goes_on && !self.pool.is_held
    }

    /// Begins a round if one is due.
    pub(crate) fn begin(&mut self, now: u64, plan: &Plan) -> Option<Sent> {
        if self
            .round
            .as_ref()
            .is_some_and(|round| now >= round.began + PATIENCE)
        {
            self.round = None;
        }
        if self.round.is_some() || now < self.next_at || self.is_gone {
            return None;
        }
        if self.leaving {
            self.member.leave();
        }
        self.rounds += 1;
        self.next_at = now + RENEW;
        self.round = Some(Round {
            number: self.rounds,
            asked: self.time(now, plan.bug),
            began: now,
            step: None,
        });
        Some((self.rounds, Request::Read))
    }

    /// Takes a letter. Returns what to send to the engine, and whether to nudge the others.
    pub(crate) fn take(
        &mut self,
        (number, reply): (u64, Reply),
        now: u64,
        plan: &Plan,
        rng: &mut Rng,
    ) -> (Vec<Sent>, bool) {
        if let Reply::Nudge = reply {
            self.next_at = self.next_at.min(now + rng.u64(..30));
            return (Vec::new(), false);
        }
        let is_mine = self
            .round
            .as_ref()
            .is_some_and(|round| round.number == number);
        match (self.round.take(), reply) {
            (
                Some(round),
                Reply::Read {
                    origin,
                    version,
                    cell,
                    counts,
                },
            ) if is_mine => {
                let reading = Reading {
                    asked: round.asked,
                    origin,
                    cell,
                    counts,
                };
                (self.decide(round, version, reading, now, plan, rng), false)
            }
            (Some(round), Reply::Swap { is_won }) if is_mine => {
                (Vec::new(), self.conclude(round, is_won, now, plan, rng))
            }
            (round, _) => {
                self.round = round;
                (Vec::new(), false)
            }
        }
    }

    fn decide(
        &mut self,
        mut round: Round,
        version: u64,
        reading: Reading,
        now: u64,
        plan: &Plan,
        rng: &mut Rng,
    ) -> Vec<Sent> {
        self.keep_cap(now, plan, rng);
        let time = self.time(now, plan.bug);
        let step = self
            .member
            .round(time, self.load(plan), reading, rng.u64(..));
        self.keep_cap(now, plan, rng);
        if step.orders.invalidate {
            self.pool.invalidate(now, rng);
        }
        if step.orders.soon {
            self.next_at = now + RENEW / 10;
        }
        let mut letters = Vec::new();
        if !step.orders.fence.is_empty() {
            letters.push((0, Request::Fence(step.orders.fence.clone())));
        }
        if step.orders.swap || self.member.is_held() || now >= self.renewed_at + RENEW * 8 / 10 {
            let cell = step.cell.clone();
            letters.push((round.number, Request::Swap { version, cell }));
            round.step = Some(step);
            self.round = Some(round);
        }
        letters
    }

    fn load(&self, plan: &Plan) -> Load {
        match plan.bug {
            Some(Bug::HasBeforeClosing) => self.pool.load_before_closing(),
            _ => self.pool.load(),
        }
    }

    /// Returns whether the others are to be nudged.
    fn conclude(
        &mut self,
        round: Round,
        is_won: bool,
        now: u64,
        plan: &Plan,
        rng: &mut Rng,
    ) -> bool {
        let Some(step) = round.step else { return false };
        if !is_won && plan.bug != Some(Bug::LostSwapIgnored) {
            self.next_at = now + rng.u64(..50);
            return false;
        }
        self.renewed_at = now;
        self.member
            .confirmed(round.asked, self.time(now, plan.bug), &step);
        self.keep_cap(now, plan, rng);
        self.is_gone = step.orders.left;
        step.orders.nudge
    }
}
