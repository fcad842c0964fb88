//! The budget: decides which key gets a place, and which key gives one up. Plain data behind one
//! short lock.
//!
//! A *place* is the right to have one resource. A key takes a place before it opens a resource, and
//! gives it back after the close. A place that is sure to come back soon, because the close of its
//! resource was ordered, is *leaving*. All others are *kept*.
//!
//! # Rules
//! - A free place goes to the waiting key that keeps the fewest. Among equals, the first comes
//!   first.
//! - A key that waits and keeps no place gets one from the next key that has a return. A key that
//!   waits and keeps some gets one only from a key that keeps at least two more. Two keys of nearly
//!   equal shares would otherwise close and open for each other with every return.
//!
//! # Invariants
//! - **B1** places held = kept + leaving, over all keys and for each of them.
//! - **B2** no place is given out while as many as `total` are held.
//! - **B3** while a ticket is queued, no place is free.
//! - **B4** no more places are leaving than were ordered and have not come back. So a waiting key
//!   never counts on a place that does not come.
//!
//! [`Budget::assert_sound`] checks B1 to B3; the tests hold the other half of B4.

#[cfg(any(test, cenote_model))]
mod sound;
#[cfg(all(test, not(cenote_model)))]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of a share. It is used again after the share was removed.
pub(crate) type ShareNo = usize;

/// A waiter that got a place, and the share of the place.
pub(crate) type Granted<W> = (ShareNo, W);

/// `T` tells whose a share is, and `W` is a waiter for a place.
#[derive(Debug)]
pub(crate) struct Budget<T, W> {
    total: usize,
    held: usize,
    /// Of those held, the places that are leaving.
    leaving: usize,
    shares: Vec<Option<Share<T, W>>>,
    vacant: Vec<ShareNo>,
    /// The shares with tickets: how many places each keeps, its first ticket, and its number.
    waiting: BTreeSet<(usize, u64, ShareNo)>,
    tickets: usize,
    last_ticket: u64,
    /// The shares that keep places. Their order is `Share::idle_since`.
    keepers: BTreeSet<(u64, ShareNo)>,
    /// When idle resources were last looked for.
    looked_at: u64,
}

/// The part of one key.
#[derive(Debug)]
struct Share<T, W> {
    owner: Option<T>,
    /// Returns of leases read it without the lock.
    kept: Arc<AtomicUsize>,
    /// Leaving by order of `recall`: the place itself knows it.
    recalled: usize,
    /// Leaving by order of `expect`: the next place that comes back is one of these.
    expected: usize,
    queue: VecDeque<(u64, W)>,
    /// None of its resources is idle since before this moment. It was true when the key was last
    /// looked at, and a resource that has become idle since then was used since then. So the key
    /// with the least recently used resource is found by a look at few keys.
    idle_since: u64,
}

impl<T, W> Share<T, W> {
    fn kept(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }

    /// The entry in the list of waiting shares.
    fn rank(&self, share: ShareNo) -> Option<(usize, u64, ShareNo)> {
        let (first, _) = self.queue.front()?;
        Some((self.kept(), *first, share))
    }

    /// The entry in the list of shares that keep places.
    fn age(&self, share: ShareNo) -> Option<(u64, ShareNo)> {
        (self.kept() > 0).then_some((self.idle_since, share))
    }
}

impl<T, W> Budget<T, W> {
    pub(crate) fn new(total: usize) -> Self {
        Self {
            total,
            held: 0,
            leaving: 0,
            shares: Vec::new(),
            vacant: Vec::new(),
            waiting: BTreeSet::new(),
            tickets: 0,
            last_ticket: 0,
            keepers: BTreeSet::new(),
            looked_at: 0,
        }
    }

    /// A key comes. Returns its number, and the number of places that it keeps.
    pub(crate) fn add(&mut self) -> (ShareNo, Arc<AtomicUsize>) {
        let kept = Arc::new(AtomicUsize::new(0));
        let share = Share {
            owner: None,
            kept: Arc::clone(&kept),
            recalled: 0,
            expected: 0,
            queue: VecDeque::new(),
            idle_since: 0,
        };
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.shares.push(None);
            self.shares.len() - 1
        });
        self.shares[number] = Some(share);
        (number, kept)
    }

    pub(crate) fn set_owner(&mut self, share: ShareNo, owner: T) {
        self.share(share).owner = Some(owner);
    }

    /// A key goes, with all its places and tickets gone. Returns its owner, to be dropped later.
    pub(crate) fn remove(&mut self, share: ShareNo) -> Option<T> {
        let gone = self.shares[share].take();
        self.vacant.push(share);
        gone.and_then(|gone| gone.owner)
    }

    /// Takes a free place. While a ticket is queued, there is none.
    pub(crate) fn take(&mut self, share: ShareNo) -> bool {
        let is_free = self.held < self.total;
        if is_free {
            self.held += 1;
            self.change_kept(share, |kept| kept + 1);
        }
        is_free
    }

    /// Queues a waiter. Returns its ticket.
    pub(crate) fn queue(&mut self, share: ShareNo, waiter: W) -> u64 {
        self.last_ticket += 1;
        let ticket = self.last_ticket;
        self.requeue(share, |queue| queue.push_back((ticket, waiter)));
        self.tickets += 1;
        ticket
    }

    /// Takes a waiter out of the queue, if it is still there.
    pub(crate) fn withdraw(&mut self, share: ShareNo, ticket: u64) -> Option<W> {
        let withdrawn = self.requeue(share, |queue| {
            let place = queue.iter().position(|(other, _)| *other == ticket)?;
            queue.remove(place)
        });
        self.tickets -= usize::from(withdrawn.is_some());
        withdrawn.map(|(_, waiter)| waiter)
    }

    /// Takes all waiters of a key out of the queue.
    pub(crate) fn withdraw_all(&mut self, share: ShareNo) -> VecDeque<(u64, W)> {
        let all = self.requeue(share, std::mem::take);
        self.tickets -= all.len();
        all
    }

    /// How many tickets of this key are queued.
    pub(crate) fn tickets_of(&self, share: ShareNo) -> usize {
        self.shares[share]
            .as_ref()
            .map_or(0, |share| share.queue.len())
    }

    /// Returns whether this key has no place and no ticket.
    pub(crate) fn is_unused(&self, share: ShareNo) -> bool {
        self.shares[share].as_ref().is_none_or(|share| {
            share.kept() + share.recalled + share.expected == 0 && share.queue.is_empty()
        })
    }

    /// A place comes back. Returns the waiters that get places.
    pub(crate) fn give_back(&mut self, share: ShareNo, was_recalled: bool) -> Vec<Granted<W>> {
        let entry = self.share(share);
        if was_recalled {
            entry.recalled -= 1;
            self.leaving -= 1;
        } else if entry.expected > 0 {
            entry.expected -= 1;
            self.leaving -= 1;
        } else {
            self.change_kept(share, |kept| kept - 1);
        }
        self.held -= 1;
        self.grant()
    }

    /// A lease of this key comes back. Returns whether its place is given up; it is leaving then.
    pub(crate) fn recall(&mut self, share: ShareNo) -> bool {
        let gives_up = self.share(share).kept() > self.recall_above();
        if gives_up {
            self.change_kept(share, |kept| kept - 1);
            self.share(share).recalled += 1;
            self.leaving += 1;
        }
        gives_up
    }

    /// A resource of this key is about to be closed for another key. If more places are needed than
    /// are leaving, this counts one as leaving and returns true.
    ///
    /// It must be counted before the resource can be closed. Counted afterwards, it would be
    /// counted for ever, and a waiter would rely on it.
    pub(crate) fn expect(&mut self, share: ShareNo) -> bool {
        let is_needed = self.missing() > 0 && self.share(share).kept() > 0;
        if is_needed {
            self.change_kept(share, |kept| kept - 1);
            self.share(share).expected += 1;
            self.leaving += 1;
        }
        is_needed
    }

    /// No resource was closed after `expect`.
    ///
    /// If the key has closed a resource by itself meanwhile, that one was taken for the expected
    /// one, and nothing is left to be undone.
    pub(crate) fn expect_no_more(&mut self, share: ShareNo) {
        let entry = self.share(share);
        if entry.expected > 0 {
            entry.expected -= 1;
            self.leaving -= 1;
            self.change_kept(share, |kept| kept + 1);
        }
    }

    /// Changes the total. Returns the waiters that get places.
    pub(crate) fn resize(&mut self, total: usize) -> Vec<Granted<W>> {
        self.total = total;
        self.grant()
    }

    /// How many places more must be given up than are leaving.
    pub(crate) fn missing(&self) -> usize {
        (self.tickets + self.held.saturating_sub(self.total)).saturating_sub(self.leaving)
    }

    /// A key that keeps more places than this gives one up with its next return.
    pub(crate) fn recall_above(&self) -> usize {
        if self.missing() == 0 {
            return usize::MAX;
        }
        if self.held - self.leaving > self.total {
            return 0;
        }
        // The places that are leaving go to the first keys in line.
        let next = self.waiting.iter().nth(self.leaving);
        let kept = match (next, self.waiting.first()) {
            (Some((kept, ..)), _) => *kept,
            (None, Some((kept, ..))) => kept + 1,
            (None, None) => return usize::MAX,
        };
        if kept == 0 { 0 } else { kept + 1 }
    }

    /// Returns whether this key is the next to get a place.
    pub(crate) fn is_first(&self, share: ShareNo) -> bool {
        let first = self.waiting.first();
        first.is_some_and(|(_, _, number)| *number == share)
    }

    /// If places are needed: the key other than `own` whose resource may be idle for longest, at
    /// least since `now`. Also returns since when a resource of the next such key may be idle.
    pub(crate) fn longest_idle(&self, own: Option<ShareNo>, now: u64) -> Option<(ShareNo, u64)> {
        let others = self.keepers.iter();
        let mut others = others.filter(|(_, share)| Some(*share) != own);
        let (_, share) = others.next().filter(|(since, _)| *since <= now)?;
        let next = others.next().map_or(u64::MAX, |(since, _)| *since);
        (self.missing() > 0).then_some((*share, next))
    }

    /// A look begins.
    pub(crate) fn look(&mut self, now: u64) {
        self.looked_at = self.looked_at.max(now);
    }

    /// A key was looked at: none of its resources is idle since before this moment.
    pub(crate) fn saw(&mut self, share: ShareNo, idle_since: u64) {
        if self.shares[share].is_some() {
            self.change(share, |entry| entry.idle_since = idle_since);
        }
    }

    /// The keys that keep places, with their owners and the number of these places.
    pub(crate) fn keepers(&self) -> impl Iterator<Item = (&T, usize)> {
        let keepers = self.keepers.iter();
        keepers.filter_map(|(_, number)| {
            let share = self.shares[*number].as_ref()?;
            Some((share.owner.as_ref()?, share.kept()))
        })
    }

    pub(crate) fn owner(&self, share: ShareNo) -> Option<&T> {
        self.shares[share].as_ref()?.owner.as_ref()
    }

    pub(crate) fn total(&self) -> usize {
        self.total
    }

    pub(crate) fn held(&self) -> usize {
        self.held
    }

    pub(crate) fn leaving(&self) -> usize {
        self.leaving
    }

    pub(crate) fn tickets(&self) -> usize {
        self.tickets
    }

    fn grant(&mut self) -> Vec<Granted<W>> {
        let mut granted = Vec::new();
        while self.held < self.total {
            let Some((_, _, share)) = self.waiting.first().copied() else {
                break;
            };
            let first = self.requeue(share, VecDeque::pop_front);
            let (_, waiter) = first.expect("bug: a share in line has a ticket");
            self.tickets -= 1;
            self.held += 1;
            self.change_kept(share, |kept| kept + 1);
            granted.push((share, waiter));
        }
        granted
    }

    fn share(&mut self, share: ShareNo) -> &mut Share<T, W> {
        let entry = self.shares[share].as_mut();
        entry.expect("bug: a share is removed after its places and tickets")
    }

    /// The one writer of a queue.
    fn requeue<A>(
        &mut self,
        share: ShareNo,
        change: impl FnOnce(&mut VecDeque<(u64, W)>) -> A,
    ) -> A {
        self.change(share, |entry| change(&mut entry.queue))
    }

    /// The one writer of the number of places that a key keeps.
    fn change_kept(&mut self, share: ShareNo, change: impl FnOnce(usize) -> usize) {
        self.change(share, |entry| {
            entry.kept.store(change(entry.kept()), Ordering::Relaxed)
        });
    }

    /// Changes what the places of a share in the two orders depend on.
    fn change<A>(&mut self, share: ShareNo, change: impl FnOnce(&mut Share<T, W>) -> A) -> A {
        let looked_at = self.looked_at;
        let entry = self.share(share);
        let (rank, age) = (entry.rank(share), entry.age(share));
        let answer = change(entry);
        if age.is_none() {
            // Its next resource is yet to be opened.
            entry.idle_since = looked_at;
        }
        let (new_rank, new_age) = (entry.rank(share), entry.age(share));
        if rank != new_rank {
            rank.map(|rank| self.waiting.remove(&rank));
            self.waiting.extend(new_rank);
        }
        if age != new_age {
            age.map(|age| self.keepers.remove(&age));
            self.keepers.extend(new_age);
        }
        answer
    }
}
