//! Shares: how the capacity is divided by floor, demand and weight.
//!
//! Each member gets its base, which it holds in any case, such as a control connection. Then come
//! floors. A member gets its whole floor or none of it, because a part may not be enough for a
//! single connection. If not all floors fit, members that have theirs keep them.
//!
//! The rest is poured twice. The first pour raises members to what they want. What is left then
//! stays where it is: the second pour raises members to what they have already. Each pour is
//! weighted max-min: it gives place after place to the member whose share, divided by its weight,
//! is the lowest.
//!
//! # Invariants
//! - **S1 cap**: the shares are never more than the capacity, together.
//! - **S2 bounds**: no share is above what its member wants, has, or has as its floor.
//! - **S3 floors**: if a member is below its floor, the floors of the others leave no room for it,
//!   and its share is not above what it has, or its base.
//! - **S4 max-min**: no place could move to a member that wants more from one that has more for its
//!   weight.
//! - **S5 nothing wasted**: if a member with its floor gets less than it wants, the whole capacity
//!   is shared out, and no member has more than it wants.
//!
//! The tests beside this file check them for random members.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What one member asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    /// What the member holds in any case. It is part of the floor.
    pub(crate) base: u32,
    pub(crate) floor: u32,
    pub(crate) wants: u32,
    pub(crate) has: u32,
    pub(crate) weight: u32,
}

/// Returns the share of each member. Ties go to the member that comes first.
pub(crate) fn shares(capacity: u32, asks: &[Ask]) -> Vec<u32> {
    let mut shares = vec![0; asks.len()];
    let mut left = lay_floors(capacity, asks, &mut shares);
    let has_floor: Vec<_> = (0..asks.len())
        .map(|nth| shares[nth] >= asks[nth].floor)
        .collect();
    let wants = |nth: usize| if has_floor[nth] { asks[nth].wants } else { 0 };
    left = pour(left, asks, wants, &mut shares);
    pour(left, asks, |nth| asks[nth].has, &mut shares);
    shares
}

/// Gives floors as long as they fit. Returns what is left.
fn lay_floors(capacity: u32, asks: &[Ask], shares: &mut [u32]) -> u32 {
    let mut order: Vec<_> = (0..asks.len()).collect();
    order.sort_by_key(|&nth| asks[nth].has < asks[nth].floor);
    let mut left = capacity;
    for (share, ask) in shares.iter_mut().zip(asks) {
        *share = ask.base.min(left);
        left -= *share;
    }
    for nth in order {
        let more = asks[nth].floor.saturating_sub(shares[nth]);
        if more <= left {
            shares[nth] += more;
            left -= more;
        }
    }
    left
}

/// Raises the shares towards their bounds, the lowest first. Returns what is left.
fn pour(mut left: u32, asks: &[Ask], bound: impl Fn(usize) -> u32, shares: &mut [u32]) -> u32 {
    // The place of a member in the order, unless its share is at its bound.
    let turn = |nth: usize, share: u32| {
        let level = Level::after_one_more(share, asks[nth].weight);
        (share < bound(nth)).then_some(Reverse((level, nth)))
    };
    let turns = (0..asks.len()).filter_map(|nth| turn(nth, shares[nth]));
    let mut lowest: BinaryHeap<_> = turns.collect();
    while left > 0 {
        let Some(Reverse((_, nth))) = lowest.pop() else {
            break;
        };
        shares[nth] += 1;
        left -= 1;
        lowest.extend(turn(nth, shares[nth]));
    }
    left
}

/// A share divided by its weight, compared without rounding.
#[derive(Clone, Copy, Debug)]
struct Level {
    share: u64,
    weight: u64,
}

impl Level {
    fn after_one_more(share: u32, weight: u32) -> Self {
        Self {
            share: u64::from(share) + 1,
            weight: u64::from(weight.max(1)),
        }
    }
}

impl Ord for Level {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // Neither product overflows: a share and a weight have 32 bits, and a share one more.
        (self.share * other.weight).cmp(&(other.share * self.weight))
    }
}

impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Level {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Level {}
