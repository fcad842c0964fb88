//! The trays: where a resource lies between two users while nobody waits.
//!
//! A slot that is set aside changes hands by its tray alone. Such a trip opens no book and writes to no memory but the tray's own, so
//! that cores which keep to their own trays do not slow each other down. Whoever needs the truth about all slots closes the trays
//! first, under the book's lock; a tray that is closed sends everybody to the book. The lock of a tray is the only thing that
//! decides between the two, and no other lock is taken under it.

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::mem;
use std::panic::Location;
use std::sync::OnceLock;

use crate::kept::{self, Kept};
use crate::ledger::{Asker, Fetched, Label, SlotNo, Terms};
use crate::moment::{Moment, nanoseconds};
use crate::rt::{Home, Owner};
use crate::sync::{AtomicU64, AtomicUsize, Latch, Ordering};

/// More are seldom in use at once by those who do not wait, and each costs memory and a look.
const MOST: usize = 64;

/// One slot's tray. On cache lines of its own: neighbours are used by other cores.
#[repr(align(64))]
pub(crate) struct Tray<R>(Latch<Option<Open<R>>>);

/// What is known of a slot while it is set aside.
struct Open<R> {
    /// Present while nobody has it.
    resource: Option<Box<R>>,
    /// Until when it may change hands as it is, how long it may lie, and how often it may be lent.
    fit_until: Moment,
    stale_after: u64,
    most_uses: u64,
    home: Option<Home>,
    asker: Asker,
    label: Option<Label>,
    /// Since when it is lent, or was lent last.
    since: Moment,
    used_at: Moment,
    uses: u64,
    /// It was laid back at least once.
    came_back: bool,
}

impl<R> Default for Tray<R> {
    fn default() -> Self {
        Self(Latch::new(None))
    }
}

impl<R> Tray<R> {
    fn open(&self, terms: Terms, asker: Asker, uses: u64, now: Moment) {
        let before = self.0.lock().replace(Open {
            resource: None,
            fit_until: terms.fit_until.unwrap_or(Moment::NEVER),
            stale_after: terms.check_after_idle.map_or(u64::MAX, nanoseconds),
            most_uses: terms.most_uses,
            home: terms.home,
            asker,
            label: None,
            since: now,
            used_at: now,
            uses,
            came_back: false,
        });
        debug_assert!(before.is_none(), "bug: a tray was opened twice");
    }

    fn close(&self) -> Option<Fetched<Box<R>>> {
        let open = self.0.lock().take()?;
        Some(Fetched {
            resource: open.resource,
            asker: open.asker,
            label: open.label,
            since: open.since,
            used_at: open.came_back.then_some(open.used_at),
            uses: open.uses,
        })
    }

    /// Takes what lies here, if it may be lent as it is. Answers with how often it was lent, too.
    #[inline]
    fn take(&self, site: &'static Location<'static>, now: Moment) -> Option<(Box<R>, u64)> {
        let mut tray = self.0.try_lock()?;
        let open = tray.as_mut()?;
        if open.resource.is_none() || !open.may_be_lent(now) {
            return None;
        }
        // Each where it belongs: what is put together first and then moved costs more.
        open.asker.site = site;
        open.asker.owner = Some(Owner::of_holder());
        open.since = now;
        open.uses += 1;
        Some((open.resource.take()?, open.uses))
    }

    /// Lays back what was lent. Answers with since when it was out; or it is not for this tray any more, and here it is again.
    #[inline]
    pub(crate) fn lay_back(&self, resource: Box<R>, now: Moment) -> Result<Moment, Box<R>> {
        let mut tray = self.0.lock();
        let Some(open) = tray.as_mut().filter(|open| open.may_come_back(now)) else {
            return Err(resource);
        };
        open.resource = Some(resource);
        open.used_at = now;
        open.came_back = true;
        let since = open.since;
        if open.label.is_some() {
            let label = open.label.take();
            drop(tray);
            drop(label);
        }
        Ok(since)
    }

    /// Writes a label on what is lent. Gives it back if the tray is closed.
    pub(crate) fn label(&self, label: Label) -> Result<(), Label> {
        let mut tray = self.0.lock();
        let Some(open) = tray.as_mut() else {
            return Err(label);
        };
        let before = open.label.replace(label);
        drop(tray);
        drop(before);
        Ok(())
    }
}

impl<R> Open<R> {
    #[inline]
    fn may_be_lent(&self, now: Moment) -> bool {
        now.nanoseconds_since(self.used_at) < self.stale_after
            && self.may_come_back(now)
            && self.home.as_ref().is_none_or(|home| !home.is_gone())
    }

    #[inline]
    fn may_come_back(&self, now: Moment) -> bool {
        self.uses < self.most_uses && now < self.fit_until
    }
}

/// The trays of one pool, by the number of the slot.
pub(crate) struct Trays<R: Send + 'static> {
    /// Each is made when it is first needed: few ever are.
    trays: Box<[OnceLock<TrayRef<R>>]>,
    /// How many are open. Written under the book's lock, and seldom.
    open: AtomicUsize,
    /// Tells the trays of one pool from those of another.
    number: u64,
}

thread_local! {
    /// The trays that were used last here, and which of them: it is the hottest, and nobody else's.
    static LAST: Cell<(u64, SlotNo)> = const { Cell::new((0, 0)) };
}

impl<R: Send + 'static> Trays<R> {
    /// For a pool of this size.
    pub(crate) fn for_size(max_size: usize) -> Self {
        static BUILT: AtomicU64 = AtomicU64::new(1);
        Self {
            trays: (0..max_size.min(MOST)).map(|_| OnceLock::new()).collect(),
            open: AtomicUsize::new(0),
            number: BUILT.fetch_add(1, Ordering::Relaxed),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.trays.len()
    }

    #[inline]
    pub(crate) fn any_open(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// Opens the tray of a slot that is set aside. What is in the slot has just been lent for the `uses`th time. Under the book's lock.
    pub(crate) fn open(
        &self,
        slot: SlotNo,
        terms: Terms,
        asker: Asker,
        uses: u64,
        now: Moment,
    ) -> TrayRef<R> {
        let tray = TrayRef::clone(self.trays[slot].get_or_init(kept::take));
        tray.open(terms, asker, uses, now);
        self.open.fetch_add(1, Ordering::Relaxed);
        tray
    }

    /// Ends the time aside of a slot, and tells what has happened. `None`: it was not. Under the book's lock.
    pub(crate) fn close(&self, slot: SlotNo) -> Option<Fetched<Box<R>>> {
        let fetched = self.trays[slot].get()?.close()?;
        self.open.fetch_sub(1, Ordering::Relaxed);
        Some(fetched)
    }

    /// Takes what lies on a tray and may be lent, looking first where this thread was last.
    #[inline(always)]
    pub(crate) fn take(
        &self,
        site: &'static Location<'static>,
        now: Moment,
    ) -> Option<(Box<R>, u64)> {
        let first = match LAST.get() {
            (number, slot) if number == self.number => slot,
            _ => 0,
        };
        let tray = self.trays.get(first)?.get();
        match tray.and_then(|tray| tray.take(site, now)) {
            None => self.take_another(first, site, now),
            taken => taken,
        }
    }

    #[cold]
    fn take_another(
        &self,
        first: SlotNo,
        site: &'static Location<'static>,
        now: Moment,
    ) -> Option<(Box<R>, u64)> {
        let slots = (first + 1..self.trays.len()).chain(0..first);
        for slot in slots {
            let tray = self.trays[slot].get();
            if let Some(taken) = tray.and_then(|tray| tray.take(site, now)) {
                LAST.set((self.number, slot));
                return Some(taken);
            }
        }
        None
    }
}

pub(crate) type TrayRef<R> = Kept<Tray<R>>;

impl<R: Send + 'static> Drop for Trays<R> {
    fn drop(&mut self) {
        let trays = mem::take(&mut self.trays);
        kept::leave(trays.into_iter().filter_map(OnceLock::into_inner));
    }
}
