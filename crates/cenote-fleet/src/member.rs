//! A member between its rounds: its lease, and the cap of its pool that is in force.
//!
//! The lease is the member's own view of its TTL. It begins when a renewal is *asked* for, and ends
//! after four fifths of the TTL. The others wait for the whole TTL from when they *see* the
//! renewal. So a member stops before the others take its share, as long as no clock runs more than
//! a tenth too fast or too slow.
//!
//! A member whose control connection is lost may be buried long before. So it is held: its pool
//! opens nothing until its record is renewed.

use std::time::Duration;

use crate::cell::{Cell, Epoch, MemberId};
use crate::step::{Counts, Load, Mine, Seen, Step, Terms, step};

/// The state of one member. It is pure: all times are given by the caller, on one clock that never
/// goes back.
#[derive(Clone, Debug)]
pub struct Member {
    id: MemberId,
    terms: Terms,
    seen: Seen,
    beat: u64,
    /// The last beat that the engine has confirmed.
    written: u64,
    max_size: u32,
    lease_ends: Duration,
    leaving: bool,
    /// The control connection was lost, and the record is not renewed yet.
    held: bool,
}

/// What was read from the engine.
#[derive(Clone, Debug)]
pub struct Reading {
    /// When the member began to read, on its own clock.
    pub asked: Duration,
    /// The engine's own history: [`Epoch::origin`].
    pub origin: u64,
    /// The cell, if there is one.
    pub cell: Option<Cell>,
    /// The sessions at the server, counted after the cell was read. `None` if they cannot be
    /// counted.
    pub counts: Option<Counts>,
}

impl Member {
    /// Makes a member that has nothing yet.
    pub fn new(id: MemberId, terms: Terms) -> Self {
        Self {
            id,
            terms,
            seen: Seen::default(),
            beat: 0,
            written: 0,
            max_size: 0,
            lease_ends: Duration::ZERO,
            leaving: false,
            held: false,
        }
    }

    /// Returns its name.
    pub fn id(&self) -> MemberId {
        self.id
    }

    /// Returns the cap of the pool that is in force now. When the lease is over it is zero, or the
    /// floor if that was kept: [`Terms::members_max`].
    pub fn max_size(&mut self, now: Duration) -> u32 {
        if now >= self.lease_ends {
            let floor = match self.leaving {
                true => 0,
                false => self.terms.floor_when_cut_off(),
            };
            self.max_size = self.max_size.min(floor);
        }
        self.max_size
    }

    /// The control connection is lost. The others may give the share away as soon as the server
    /// counts no session of this member.
    pub fn lost(&mut self) {
        self.held = true;
    }

    /// Returns whether the pool must open nothing, whatever its cap is. It may go on with what it
    /// has.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Returns when the lease ends.
    pub fn lease_ends(&self) -> Duration {
        self.lease_ends
    }

    /// From now on the member gives back what it has. [`Orders::left`] tells when it is done.
    ///
    /// [`Orders::left`]: crate::protocol::Orders::left
    pub fn leave(&mut self) {
        self.leaving = true;
    }

    /// Decides a round after a read. `load` was measured after the pool was told the result of
    /// [`Member::max_size`]. A smaller cap holds from now on, and the pool must be told.
    pub fn round(&mut self, now: Duration, load: Load, reading: Reading, nonce: u64) -> Step {
        self.seen.counted(reading.counts);
        self.beat += 1;
        let mine = Mine {
            id: self.id,
            terms: self.terms,
            load,
            max_size: self.max_size,
            beat: self.beat,
            written: self.written,
            asked: reading.asked,
            held: self.held,
            leaving: self.leaving,
            fresh: Epoch {
                origin: reading.origin,
                nonce,
            },
        };
        let step = step(now, &mine, reading.cell.as_ref(), &mut self.seen);
        self.max_size = self.max_size.min(step.max_size);
        step
    }

    /// The engine has confirmed the swap of a step. `asked` is when its round began, before the
    /// read. The new cap holds, unless the lease was over before the answer came.
    pub fn confirmed(&mut self, asked: Duration, now: Duration, step: &Step) {
        let own = step.cell.members.get(&self.id);
        self.written = own.map_or(0, |record| record.beat).max(self.written);
        self.held = false;
        let lease = Duration::from_millis(self.terms.ttl.into()) * 4 / 5;
        self.lease_ends = self.lease_ends.max(asked + lease);
        if now < self.lease_ends {
            self.max_size = step.max_size;
        }
    }
}
