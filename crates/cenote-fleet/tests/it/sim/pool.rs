//! The model of a pool: it obeys a cap as `cenote::Pool::resize` promises.

use cenote_fleet::protocol::{Load, MemberId};
use fastrand::Rng;

use super::plan::Plan;
use super::server::Server;

/// At most so many opens run at once.
const MAX_OPENING: usize = 3;

/// The longest open and the longest close, in milliseconds.
const LONGEST: u64 = 40;

#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) max_size: u32,
    /// It lends and opens nothing, and keeps what it has.
    pub(crate) is_held: bool,
    /// How many connections callers want to hold.
    pub(crate) demand: u32,
    idle: Vec<u64>,
    /// The session, when it comes back, and whether it is closed then.
    leased: Vec<(u64, u64, bool)>,
    /// When each open reaches the server.
    pub(crate) opening: Vec<u64>,
    closing: Vec<(u64, u64)>,
    /// The canceller's session, and when it is closed.
    canceller: Option<(u64, u64)>,
}

impl Pool {
    pub(crate) fn new() -> Self {
        Self {
            max_size: 0,
            is_held: false,
            demand: 0,
            idle: Vec::new(),
            leased: Vec::new(),
            opening: Vec::new(),
            closing: Vec::new(),
            canceller: None,
        }
    }

    pub(crate) fn load(&self) -> Load {
        Load {
            open: (self.total() + self.closing.len()) as u32,
            wants: self.demand.max(self.leased.len() as u32),
        }
    }

    /// The load if connections counted as closed as soon as their close is decided.
    pub(crate) fn load_before_closing(&self) -> Load {
        let open = self.total() as u32;
        Load {
            open: open.min(self.max_size),
            ..self.load()
        }
    }

    fn total(&self) -> usize {
        self.idle.len() + self.leased.len() + self.opening.len()
    }

    pub(crate) fn resize(&mut self, max_size: u32, now: u64, rng: &mut Rng) {
        self.max_size = max_size;
        while self.total() > max_size as usize {
            let Some(session) = self.idle.pop() else {
                break;
            };
            self.close(session, now, rng);
        }
    }

    pub(crate) fn invalidate(&mut self, now: u64, rng: &mut Rng) {
        while let Some(session) = self.idle.pop() {
            self.close(session, now, rng);
        }
        for lease in &mut self.leased {
            lease.2 = true;
        }
    }

    fn close(&mut self, session: u64, now: u64, rng: &mut Rng) {
        self.closing.push((session, now + rng.u64(..LONGEST)));
    }

    /// Lets the pool and its callers act. `may_cancel` is false when the member's lease is over.
    pub(crate) fn tick(
        &mut self,
        now: u64,
        (plan, id): (&Plan, MemberId),
        server: &mut Server,
        may_cancel: bool,
        rng: &mut Rng,
    ) {
        self.finish_closes(now, server);
        self.finish_opens(now, id, server);
        self.end_leases(now, server, rng);
        self.idle.retain(|session| server.is_alive(*session));
        if !self.is_held {
            self.serve(now, plan, rng);
        }
        self.cancel(now, id, server, may_cancel, rng);
    }

    fn finish_closes(&mut self, now: u64, server: &mut Server) {
        self.closing.retain(|(session, at)| {
            let is_done = *at <= now;
            if is_done {
                server.end(*session);
            }
            !is_done
        });
    }

    fn finish_opens(&mut self, now: u64, id: MemberId, server: &mut Server) {
        let due = self.opening.iter().filter(|at| **at <= now).count();
        self.opening.retain(|at| *at > now);
        self.idle.extend((0..due).filter_map(|_| server.open(id)));
    }

    fn end_leases(&mut self, now: u64, server: &mut Server, rng: &mut Rng) {
        let leased = std::mem::take(&mut self.leased);
        let (over, out) = leased.into_iter().partition(|(_, until, _)| *until <= now);
        self.leased = out;
        let over: Vec<_> = over;
        for (session, _, is_retired) in over {
            if !server.is_alive(session) {
                continue;
            }
            match is_retired || self.total() >= self.max_size as usize {
                true => self.close(session, now, rng),
                false => self.idle.push(session),
            }
        }
        // An open that came up after a shrink is one too many.
        self.resize(self.max_size, now, rng);
    }

    fn serve(&mut self, now: u64, plan: &Plan, rng: &mut Rng) {
        while self.leased.len() < self.demand as usize && self.max_size > 0 {
            let Some(session) = self.idle.pop() else {
                break;
            };
            self.leased.push((session, now + plan.hold(rng), false));
        }
        let wanted = (self.demand as usize).saturating_sub(self.leased.len());
        while self.opening.len() < wanted.min(MAX_OPENING) {
            if self.total() + self.closing.len() >= self.max_size as usize {
                break;
            }
            self.opening.push(now + rng.u64(..LONGEST));
        }
    }

    /// Some leases are given up in the middle of a statement. It is cancelled by a session of its
    /// own, which is closed before the last connection of the pool.
    fn cancel(
        &mut self,
        now: u64,
        id: MemberId,
        server: &mut Server,
        may_cancel: bool,
        rng: &mut Rng,
    ) {
        let mut leased = self.leased.iter();
        let may_cancel = may_cancel && leased.any(|(session, ..)| server.is_alive(*session));
        if let Some((session, until)) = self.canceller {
            if until <= now || !may_cancel {
                server.end(session);
                self.canceller = None;
            }
        } else if may_cancel && rng.u8(..20) == 0 {
            let session = server.open(id);
            self.canceller = session.map(|session| (session, now + rng.u64(..200)));
        }
    }
}
