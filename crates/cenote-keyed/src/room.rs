//! The room: the budget behind its lock, and the places, shares and tickets as values that give
//! themselves back.
//!
//! # Race
//! A return asks `must_give_up` before its resource is idle. If a ticket is queued right after, its
//! look for idle resources can come too early to find this one. The same is true of a resource that
//! becomes idle because its caller gave up during an open, a check or a clean: no return is asked
//! about it. So a waiter looks again after a pause ([`wait`](crate::wait)). All other orders are
//! counted under the lock before they can be carried out.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{self, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::budget::{Budget, Granted, ShareNo};
use crate::lock::{AtomicUsize, Lock};

/// The pool of a key, as the room sees it. It is called with no lock held, and keeps its share.
pub(crate) trait Owner: Send + Sync {
    /// For how many nanoseconds the resource was idle that is idle for longest.
    fn longest_idle(&self) -> Option<u64>;

    /// Closes the least recently used resource that no caller holds. Returns whether one is sure to
    /// be closed.
    fn evict(&self) -> bool;

    /// How many callers wait.
    fn waiting(&self) -> usize;

    /// The key as text.
    fn label(&self) -> String;
}

/// A waiter for a place, and the share that the place belongs to then.
pub(crate) struct Waiter {
    mailbox: oneshot::Sender<Place>,
    share: Arc<Share>,
}

type Places = Budget<Weak<dyn Owner>, Waiter>;

/// The budget of all keys.
pub(crate) struct Room {
    budget: Lock<Places>,
    /// A copy of [`Budget::recall_above`], for returns, which do not take the lock.
    recall_above: AtomicUsize,
    made_at: Instant,
}

impl Room {
    #[expect(clippy::disallowed_methods, reason = "moments are counted from here")]
    pub(crate) fn new(total: usize) -> Arc<Self> {
        Arc::new(Self {
            budget: Lock::new(Budget::new(total)),
            recall_above: AtomicUsize::new(usize::MAX),
            made_at: Instant::now(),
        })
    }

    /// A key comes.
    pub(crate) fn share(self: &Arc<Self>) -> Arc<Share> {
        let (number, kept) = self.budget.lock().add();
        Arc::new(Share {
            room: Arc::clone(self),
            number,
            kept,
        })
    }

    /// Looks at the budget.
    pub(crate) fn read<A>(&self, look: impl FnOnce(&Places) -> A) -> A {
        look(&self.budget.lock())
    }

    /// How many keys hold places, and the text of those that hold most.
    pub(crate) fn holders(&self, most: usize) -> (usize, Vec<(String, usize)>) {
        let mut holders: Vec<_> = self.read(|budget| {
            let keepers = budget.keepers();
            keepers.map(|(owner, kept)| (owner.clone(), kept)).collect()
        });
        let keys = holders.len();
        holders.sort_by_key(|(_, kept)| std::cmp::Reverse(*kept));
        holders.truncate(most);
        let named = holders.into_iter();
        let named = named.filter_map(|(owner, kept)| Some((owner.upgrade()?.label(), kept)));
        (keys, named.collect())
    }

    /// Changes the total.
    pub(crate) fn resize(&self, total: usize) {
        hand_out(self.change(|budget| budget.resize(total)));
        self.look(None);
    }

    /// Closes idle resources of other keys than `own`, the least recently used first, until enough
    /// places are leaving.
    pub(crate) fn look(&self, own: Option<ShareNo>) {
        let now = self.now();
        self.change(|budget| budget.look(now));
        while let Some((share, next)) = self.read(|budget| budget.longest_idle(own, now)) {
            let owner = self.read(|budget| budget.owner(share).cloned());
            let owner = owner.and_then(|owner| owner.upgrade());
            let idle = owner.as_ref().and_then(|owner| owner.longest_idle());
            let since = idle.map_or(now + 1, |idle| now.saturating_sub(idle));
            self.change(|budget| budget.saw(share, since));
            let Some(owner) = owner.filter(|_| since <= next && since <= now) else {
                continue;
            };
            if self.change(|budget| budget.expect(share)) && !owner.evict() {
                // A caller has just taken it. Its return is asked.
                self.change(|budget| {
                    budget.expect_no_more(share);
                    budget.saw(share, now + 1);
                });
            }
        }
    }

    /// Nanoseconds since the room was made.
    #[expect(
        clippy::disallowed_methods,
        reason = "to compare resources of several pools by age"
    )]
    fn now(&self) -> u64 {
        let since = Instant::now().saturating_duration_since(self.made_at);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX - 1)
    }

    /// Makes one change, and publishes what returns have to know.
    fn change<A>(&self, change: impl FnOnce(&mut Places) -> A) -> A {
        let mut budget = self.budget.lock();
        let answer = change(&mut budget);
        #[cfg(cenote_model)]
        budget.assert_sound();
        let above = budget.recall_above();
        self.recall_above.store(above, Ordering::Release);
        answer
    }
}

/// Tells the waiters that got places. A waiter that is gone gives its place back.
fn hand_out(granted: Vec<Granted<Waiter>>) {
    for (_, Waiter { mailbox, share }) in granted {
        let is_recalled = false;
        drop(mailbox.send(Place { share, is_recalled }));
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").finish_non_exhaustive()
    }
}

/// The part of one key in the budget.
pub(crate) struct Share {
    room: Arc<Room>,
    number: ShareNo,
    kept: Arc<atomic::AtomicUsize>,
}

impl Share {
    pub(crate) fn room(&self) -> &Arc<Room> {
        &self.room
    }

    pub(crate) fn set_owner(&self, owner: Weak<dyn Owner>) {
        self.room
            .change(|budget| budget.set_owner(self.number, owner));
    }

    pub(crate) fn owner(&self) -> Option<Arc<dyn Owner>> {
        let owner = self.room.read(|budget| budget.owner(self.number).cloned());
        owner?.upgrade()
    }

    /// Takes a place, if one is free.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Place> {
        let is_free = self.room.change(|budget| budget.take(self.number));
        is_free.then(|| Place {
            share: Arc::clone(self),
            is_recalled: false,
        })
    }

    /// Queues for a place, or takes one, unless `most` tickets of this key are queued already.
    pub(crate) fn queue(self: &Arc<Self>, most: usize) -> Option<Ticket> {
        let (mailbox, place) = oneshot::channel();
        let waiter = Waiter {
            mailbox,
            share: Arc::clone(self),
        };
        let queued = self.room.change(|budget| {
            if budget.tickets_of(self.number) >= most {
                return Err(waiter);
            }
            if budget.take(self.number) {
                return Ok((0, Some(waiter)));
            }
            Ok((budget.queue(self.number, waiter), None))
        });
        let (number, taken) = queued.ok()?;
        hand_out(
            taken
                .map(|waiter| (self.number, waiter))
                .into_iter()
                .collect(),
        );
        Some(Ticket {
            share: Arc::clone(self),
            number,
            place,
        })
    }

    /// How many tickets of this key are queued.
    pub(crate) fn tickets(&self) -> usize {
        self.room.read(|budget| budget.tickets_of(self.number))
    }

    /// Returns whether this key is the next to get a place.
    pub(crate) fn is_first(&self) -> bool {
        self.room.read(|budget| budget.is_first(self.number))
    }

    /// Ends the tickets of this key without a place.
    pub(crate) fn call_off(&self) {
        drop(self.room.change(|budget| budget.withdraw_all(self.number)));
    }

    /// Closes idle resources of other keys, if places are needed.
    pub(crate) fn look(&self) {
        self.room.look(Some(self.number));
    }

    /// Returns whether this key has no place and no ticket.
    pub(crate) fn is_unused(&self) -> bool {
        self.room.read(|budget| budget.is_unused(self.number))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        drop(self.room.change(|budget| budget.remove(self.number)));
    }
}

/// The right to have one resource. Dropped, it goes to the next waiter.
pub(crate) struct Place {
    share: Arc<Share>,
    is_recalled: bool,
}

impl Place {
    /// The lease of the resource at this place has ended. Returns whether the resource must be
    /// closed, because another key needs the place. The caller closes it then.
    #[inline]
    pub(crate) fn must_give_up(&mut self) -> bool {
        let Share { room, kept, number } = &*self.share;
        let above = room.recall_above.load(Ordering::Acquire);
        if above == usize::MAX || kept.load(Ordering::Relaxed) <= above {
            return false;
        }
        if !self.is_recalled {
            self.is_recalled = room.change(|budget| budget.recall(*number));
        }
        self.is_recalled
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Share { room, number, .. } = &*self.share;
        hand_out(room.change(|budget| budget.give_back(*number, self.is_recalled)));
    }
}

/// A place in the queue. It ends with a place, or with `None` if the wait was called off.
pub(crate) struct Ticket {
    share: Arc<Share>,
    number: u64,
    place: oneshot::Receiver<Place>,
}

impl Future for Ticket {
    type Output = Option<Place>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Place>> {
        Pin::new(&mut self.place).poll(context).map(Result::ok)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let Self { share, number, .. } = self;
        drop(
            share
                .room
                .change(|budget| budget.withdraw(share.number, *number)),
        );
    }
}
