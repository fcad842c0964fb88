//! One round of a member: what it writes, how large its pool may be, and what it must do.
//!
//! [`step`] is pure. It is given the time on the member's own clock, the cell that was read, and
//! what the member has seen before. It returns the cell to swap in. If the swap is lost, nothing
//! has happened, and the round begins again with another read.
//!
//! # Invariants
//! - **F1 facts**: a member's sessions are never more than `has` in its record. So `has` rises
//!   before the pool may grow, and falls only after connections are closed.
//! - **F2 cap**: in a learned cell no member raises its `has` above what the capacity leaves, after
//!   the others' `has` and after all sessions at the server that belong to no member.
//! - **F3 burial**: a record is removed only by its own member, or after its beat did not change
//!   for the member's TTL by the clock of the one that removes it. If sessions can be counted, the
//!   count must be zero as well, and taken after the member was marked as fenced.
//! - **F4 learning**: a cell that was made after a loss becomes learned only after it was watched
//!   for a TTL. By then every member has claimed what it holds, or its lease is over.
//! - **F5 quick burial**: where each member has a control connection among the counted sessions, a
//!   record is also removed after two counts of zero that are [`GRACE`] apart, with no beat
//!   between. A member that lives notices within the grace that its control connection is lost.
//!   From then on its pool opens nothing, until a swap has renewed its record over a new
//!   connection.
//!
//! The simulation in `tests/it/` checks the sum of F1 and F2 at every step: the sessions at the
//! server are never more than the capacity.

mod seen;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use seen::{Counts, Seen};

use crate::cell::{Cell, Epoch, MemberId, Name, Record};
use crate::share::{Ask, shares};

/// The time in which a process notices that its control connection is lost. The end of a connection
/// reaches it in milliseconds, also on a machine that is busy.
const GRACE: Duration = Duration::from_millis(300);

/// The settings of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The sessions that all members may have, together.
    pub capacity: u32,
    /// The connections of its pool that come before all demand.
    pub floor: u32,
    /// Its part of what is left, beside the weights of the others.
    pub weight: u32,
    /// The sessions that it may have beside its pool: the control connection, a canceller, a
    /// watchdog. While the pool may have connections, they count whether they are open or not.
    pub overhead: u32,
    /// What people call it.
    pub name: Name,
    /// How long it may be silent before it is fenced, in milliseconds.
    pub ttl: u32,
    /// Every member has a control connection at the server of the pooled connections, and it is
    /// counted with them. A member that lives has a session, and one place is kept for the control
    /// connection of the next process that joins.
    pub control: bool,
    /// The most members that there are at once, with those that are cut off. If it is not zero,
    /// their floors are kept for them, and a member whose lease is over goes on with its floor.
    pub members_max: u32,
}

impl Terms {
    /// Returns how large the pool may be while the lease is over.
    pub(crate) fn floor_when_cut_off(&self) -> u32 {
        if self.members_max > 0 { self.floor } else { 0 }
    }
}

/// What the pool of a member does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The connections that exist: also those that are being opened or closed.
    pub open: u32,
    /// The connections that the callers of the pool have use for.
    pub wants: u32,
}

/// What a member knows of itself.
#[derive(Clone, Copy, Debug)]
pub struct Mine {
    /// Its name.
    pub id: MemberId,
    /// Its settings.
    pub terms: Terms,
    /// What its pool does. It was measured while `max_size` was in force.
    pub load: Load,
    /// The present cap of its pool.
    pub max_size: u32,
    /// A number that it has not used before, larger than all that it has.
    pub beat: u64,
    /// The last of its numbers that is known to be in the cell. Zero if none is.
    pub written: u64,
    /// When it began to read the cell, before the sessions were counted.
    pub asked: Duration,
    /// It has lost its control connection since its last renewal, and may have been buried.
    pub held: bool,
    /// It wants to leave, and asks for nothing.
    pub leaving: bool,
    /// The epoch of a cell that it has to make. Its origin is that of the engine now.
    pub fresh: Epoch,
}

/// The outcome of [`step`].
#[derive(Clone, Debug)]
pub struct Step {
    /// The cell to swap in.
    pub cell: Cell,
    /// The next cap of the pool. A smaller one holds at once. A larger one holds only after the
    /// swap has succeeded.
    pub max_size: u32,
    /// What to do besides.
    pub orders: Orders,
}

/// What a member must do after a [`step`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// End all sessions of these members at the server, at once.
    pub fence: Vec<MemberId>,
    /// Retire all connections of the pool: they were ended, or their share was given away.
    pub invalidate: bool,
    /// Swap even if no renewal is due.
    pub swap: bool,
    /// Tell the others to look, after the swap has succeeded.
    pub nudge: bool,
    /// Begin the next round soon, because there is more to do.
    pub soon: bool,
    /// The swap takes the member out of the group.
    pub left: bool,
}

/// Decides one round. The module describes the rules.
pub fn step(now: Duration, mine: &Mine, cell: Option<&Cell>, seen: &mut Seen) -> Step {
    let read = cell.filter(|cell| cell.epoch.origin == mine.fresh.origin);
    let read = read.filter(|cell| !is_older(cell, mine));
    let mut next = read.cloned().unwrap_or_else(|| unlearned(mine.fresh));
    seen.look(now, &next);
    next.learned |= seen.has_watched_epoch(now, longest_ttl(&next, mine));

    let mut orders = Orders {
        fence: bury(now, mine, &mut next, seen),
        ..Orders::default()
    };
    let (held, in_force) = claim(mine, &mut next, seen, &mut orders);
    let goal = goal(mine, &next, seen).unwrap_or(held);
    let room = room_for(mine, &next, seen);
    let has = held.max(goal.min(room));
    // Connections that are told as a fact may have ended meanwhile. Where they are more than the
    // capacity leaves, nothing may be opened in their place.
    let most = room.max(in_force.saturating_add(mine.terms.overhead));
    let max_size = match next.learned || mine.leaving {
        true => goal.min(most).saturating_sub(mine.terms.overhead),
        false => in_force,
    };
    let is_gone = mine.load.open == 0 && mine.max_size == 0;
    orders.left = mine.leaving && is_gone && seen.count(mine.id) <= mine.terms.overhead;
    if orders.left {
        next.members.remove(&mine.id);
    } else if let Some(record) = next.members.get_mut(&mine.id) {
        record.has = has;
    }
    announce(mine, read, &next, &mut orders);
    let is_gone = |id: &MemberId| seen.gone_for(*id, mine.asked).is_some();
    orders.soon |= held > goal || mine.terms.control && next.members.keys().any(is_gone);
    orders.swap |= max_size > mine.max_size;
    Step {
        cell: next,
        max_size,
        orders,
    }
}

/// Returns whether the member has written a later cell than this: an older one was put back.
fn is_older(cell: &Cell, mine: &Mine) -> bool {
    let own = cell.members.get(&mine.id);
    own.is_some_and(|record| record.beat < mine.written)
}

/// There was a cell before, or there may have been: members must claim what they hold.
fn unlearned(epoch: Epoch) -> Cell {
    Cell {
        learned: false,
        ..Cell::new(epoch)
    }
}

/// F4 must hold for the member with the longest lease.
fn longest_ttl(cell: &Cell, mine: &Mine) -> Duration {
    let ttls = cell.members.values().map(|record| record.ttl);
    milliseconds(ttls.fold(mine.terms.ttl, u32::max))
}

/// Marks silent members as fenced, and removes those whose sessions have ended. Returns the tags
/// whose sessions are to be ended: of silent members, and of old strays.
fn bury(now: Duration, mine: &Mine, next: &mut Cell, seen: &Seen) -> Vec<MemberId> {
    // A member that is cut off may keep its floor.
    let kept = match mine.terms.members_max {
        0 => 0,
        _ => largest_floor(next, mine),
    };
    let mut fence = seen.strays_for(now, longest_ttl(next, mine));
    fence.retain(|&id| id != mine.id && seen.count(id) > kept);
    next.members.retain(|&id, record| {
        let gone = seen.gone_for(id, mine.asked);
        if mine.terms.control && id != mine.id && gone.is_some_and(|gone| gone >= GRACE) {
            return false;
        }
        let was_fenced = record.fenced;
        let is_silent = seen.silent_for(id, now) >= milliseconds(record.ttl);
        record.fenced |= is_silent && id != mine.id;
        if !record.fenced || id == mine.id {
            return true;
        }
        match seen.counts() {
            // Time alone decides where nothing can be counted.
            None => false,
            // The count was taken before the mark was written, so it proves nothing.
            Some(_) if !was_fenced => true,
            Some(_) if seen.count(id) <= kept => false,
            Some(_) => {
                fence.push(id);
                true
            }
        }
    });
    fence
}

/// Writes the member's own record by the facts. Returns what it holds, and the cap of its pool that
/// still counts.
fn claim(mine: &Mine, next: &mut Cell, seen: &Seen, orders: &mut Orders) -> (u32, u32) {
    let terms = &mine.terms;
    let before = next.members.get(&mine.id);
    // A learned cell without the member: the member is new, or it was buried and its share was
    // given away. Then only the connections that exist count, and the floor that was kept for it.
    // A member that is held may have been buried before the cell was lost.
    let is_void = before.is_none() && (next.learned || mine.held);
    let in_force = match is_void {
        true => mine.max_size.min(terms.floor_when_cut_off()),
        false => mine.max_size,
    };
    let was_fenced = before.is_some_and(|record| record.fenced);
    orders.invalidate = mine.load.open > 0 && (is_void || was_fenced);

    // Without a pool there is nothing to cancel or to watch, and a control connection is counted.
    let held = match mine.load.open.max(in_force) {
        0 => seen.count(mine.id),
        pooled => seen
            .count(mine.id)
            .max(pooled.saturating_add(terms.overhead)),
    };
    let (floor, wants) = match mine.leaving {
        true => (0, 0),
        false => (terms.floor, mine.load.wants),
    };
    let record = Record {
        beat: mine.beat,
        ttl: terms.ttl,
        capacity: terms.capacity,
        floor: floor.saturating_add(terms.overhead),
        weight: terms.weight,
        has: held,
        wants: wants.saturating_add(terms.overhead),
        fenced: false,
        name: terms.name,
    };
    next.members.insert(mine.id, record);
    (held, in_force)
}

/// Returns the share of the member, or `None` while the cell is not learned.
fn goal(mine: &Mine, next: &Cell, seen: &Seen) -> Option<u32> {
    if mine.leaving {
        return Some(0);
    }
    let is_living = |record: &Record| !record.fenced;
    let living = next.members.iter().filter(|(_, record)| is_living(record));
    let asks = living.clone().map(|(id, record)| Ask {
        base: u32::from(mine.terms.control).min(record.floor),
        floor: record.floor,
        wants: record.wants.min(next.capacity()),
        has: record.has.max(seen.count(*id)),
        weight: record.weight,
    });
    let fenced = next.members.iter().filter(|(_, record)| !is_living(record));
    let taken = sum(fenced.map(|(id, record)| record.has.max(seen.count(*id))));
    let left = next.capacity().saturating_sub(taken);
    let left = left.saturating_sub(kept_for_others(mine, next, seen));
    let shares = shares(left, &asks.collect::<Vec<_>>());
    let place = living.map(|(id, _)| *id).position(|id| id == mine.id)?;
    next.learned.then(|| shares[place])
}

/// Returns how many sessions the capacity leaves to the member, as things are.
fn room_for(mine: &Mine, cell: &Cell, seen: &Seen) -> u32 {
    let others = cell.members.iter().filter(|(other, _)| **other != mine.id);
    let taken = sum(others.map(|(other, record)| record.has.max(seen.count(*other))));
    let left = cell.capacity().saturating_sub(taken);
    left.saturating_sub(kept_for_others(mine, cell, seen))
}

/// Returns how many sessions belong to processes that are not in the cell, or are kept for them.
fn kept_for_others(mine: &Mine, cell: &Cell, seen: &Seen) -> u32 {
    if mine.terms.members_max == 0 {
        let strays = sum(seen.stray_counts(cell).map(|(_, count)| count));
        return strays.max(u32::from(mine.terms.control));
    }
    let floor = largest_floor(cell, mine);
    let mut absent = mine.terms.members_max as usize;
    absent = absent.saturating_sub(cell.members.len());
    let strays = seen.stray_counts(cell).map(|(_, count)| {
        absent = absent.saturating_sub(1);
        count.max(floor)
    });
    let strays = sum(strays);
    strays.saturating_add(floor.saturating_mul(absent as u32))
}

/// The floors of the members are not known while they are not in the cell.
fn largest_floor(cell: &Cell, mine: &Mine) -> u32 {
    let floors = cell.members.values().map(|record| record.floor);
    let own = mine.terms.floor.saturating_add(mine.terms.overhead);
    floors.fold(own, u32::max)
}

/// Orders a swap and a nudge if the cell has changed in a way that matters to the others.
fn announce(mine: &Mine, read: Option<&Cell>, next: &Cell, orders: &mut Orders) {
    let Some(read) = read else {
        (orders.swap, orders.nudge, orders.soon) = (true, true, true);
        return;
    };
    let marks = |cell: &Cell| -> Vec<_> {
        let marks = cell.members.iter().map(|(id, record)| (*id, record.fenced));
        marks.collect()
    };
    let others_changed = marks(read) != marks(next) || read.learned != next.learned;
    let (before, after) = (read.members.get(&mine.id), next.members.get(&mine.id));
    let (gave, asks) = match (before, after) {
        (Some(before), Some(after)) => {
            let is_hungry = after.wants > after.has;
            (
                after.has < before.has,
                is_hungry && after.wants > before.wants,
            )
        }
        _ => (true, true),
    };
    let without_beat = |record: Record| Record { beat: 0, ..record };
    let mine_changed = before.copied().map(without_beat) != after.copied().map(without_beat);
    orders.swap = others_changed || mine_changed;
    orders.nudge = others_changed || gave || asks;
    orders.soon = others_changed || !orders.fence.is_empty();
}

fn sum(numbers: impl Iterator<Item = u32>) -> u32 {
    numbers.fold(0, u32::saturating_add)
}

fn milliseconds(count: u32) -> Duration {
    Duration::from_millis(count.into())
}
