//! Trays: where a resource lies between two users while no waiter is queued.
//!
//! A trip by tray does not take the ledger's lock and writes to no memory but the tray's own, so
//! that cores which keep to their own trays do not slow each other down: 33 ns for a trip instead
//! of 250, and two cores are faster than one.
//!
//! # Race
//! The spin lock of a tray orders everything that happens to the slot on it. A tray is opened and
//! closed under the ledger's lock. A taker or a giver takes the tray's lock alone, and no other
//! lock is taken under it.
//! - A taker comes before the tray is closed: the ledger sees the slot as leased by that taker.
//! - The tray is closed before the taker comes: the taker finds a closed tray and asks the ledger.
//! - A giver comes before the tray is closed: the resource lies on it, and the ledger gets it.
//! - The tray is closed before the giver comes: the giver finds a closed tray, or the tray of
//!   another slot, and gives the resource to the ledger.
//!
//! A caller that has to wait clears all trays under the ledger's lock before it is queued, and no
//! tray is opened while a waiter is queued (I8). So no resource can come back to a tray while a
//! waiter needs it.

#[cfg(all(test, not(cenote_model)))]
mod tests;

#[cfg(not(cenote_model))]
pub(crate) mod cell_trays;
pub(crate) mod immortal;

use std::cell::Cell;
use std::mem;
use std::panic::Location;
use std::sync::OnceLock;

use crate::ledger::{Label, OnTray, SlotNo, TrayNo};
use crate::rt::Owner;
use crate::rt::sync::{AtomicU64, AtomicUsize, Ordering, SpinLock};
use crate::time::Moment;

/// How many trays a pool has at most: each costs memory, and the ledger clears them all before a
/// caller waits.
const MOST: usize = 64;

/// How many trays a taker looks at before it asks the ledger.
const PROBES: usize = 3;

/// One tray. On cache lines of its own, because other cores use its neighbours; on two of them,
/// because processors fetch cache lines in pairs.
#[repr(align(128))]
pub(crate) struct Tray<R>(SpinLock<Option<OnTray<R>>>);

impl<R> Default for Tray<R> {
    fn default() -> Self {
        Self(SpinLock::new(None))
    }
}

impl<R> Tray<R> {
    fn open(&self, on_tray: OnTray<R>) {
        let before = self.0.lock().replace(on_tray);
        debug_assert!(before.is_none(), "bug: a tray was opened twice");
    }

    fn close(&self) -> Option<OnTray<R>> {
        self.0.lock().take()
    }

    /// Takes the resource that lies here, if it may be lent as it is. Returns how often it was
    /// lent, too.
    #[inline]
    fn take(&self, site: &'static Location<'static>, now: Moment) -> Option<(R, u64)> {
        let mut tray = self.0.try_lock()?;
        let open = tray.as_mut()?;
        if open.resource.is_none() || !open.may_be_lent(now) {
            return None;
        }
        let uses = open.lend(site, now);
        Some((open.resource.take()?, uses))
    }

    /// Lays back the resource of this slot. Returns since when it was out; or the resource, if it
    /// has to go to the ledger.
    // Inlined in both of its callers: one of them is the trip.
    #[inline(always)]
    pub(crate) fn lay_back(&self, slot: SlotNo, resource: R, now: Moment) -> Result<Moment, R> {
        let mut tray = self.0.lock();
        let is_open = |open: &&mut OnTray<R>| open.slot == slot && open.may_come_back(now);
        let Some(open) = tray.as_mut().filter(is_open) else {
            return Err(resource);
        };
        // An assignment would look for a former value to drop, which takes a twentieth of the trip.
        open.resource.get_or_insert(resource);
        let since = open.came_back(now);
        if open.label.is_some() {
            let label = open.label.take();
            drop(tray);
            drop(label);
        }
        Ok(since)
    }

    /// Writes a label on the lease of this slot. Returns it if the slot is not on this tray.
    pub(crate) fn label(&self, slot: SlotNo, label: Label) -> Result<(), Label> {
        let mut tray = self.0.lock();
        let Some(open) = tray.as_mut().filter(|open| open.slot == slot) else {
            return Err(label);
        };
        let before = open.label.replace(label);
        drop(tray);
        drop(before);
        Ok(())
    }
}

impl<R> OnTray<R> {
    /// The resource that lies here is lent. Returns how often it was.
    #[inline]
    fn lend(&mut self, site: &'static Location<'static>, now: Moment) -> u64 {
        // Field by field: a value that is built first and then moved costs more.
        self.asker.site = site;
        self.asker.owner = Some(Owner::of_holder());
        self.since = now;
        self.uses += 1;
        self.uses
    }

    /// The resource has come back. Returns since when it was out.
    #[inline(always)]
    fn came_back(&mut self, now: Moment) -> Moment {
        self.used_at = now;
        self.held += now.nanoseconds_since(self.since);
        self.since
    }

    #[inline]
    fn may_be_lent(&self, now: Moment) -> bool {
        now.nanoseconds_since(self.used_at) < self.stale_after && self.may_come_back(now)
    }

    #[inline]
    fn may_come_back(&self, now: Moment) -> bool {
        self.uses < self.most_uses && now < self.fit_until
    }
}

/// The trays of a pool, for many threads or for one.
pub(crate) trait AnyTrays<R> {
    /// A short way to one tray.
    type Tray;

    /// For a pool of this size.
    fn for_size(max_size: usize) -> Self;

    fn len(&self) -> usize;

    /// Opens a tray for a slot that has just been lent. Under the ledger's lock.
    fn open(&self, tray: TrayNo, on_tray: OnTray<R>) -> Self::Tray;

    /// Closes a tray, and returns what has happened on it. Under the ledger's lock.
    fn close(&self, tray: TrayNo) -> Option<OnTray<R>>;

    /// Takes a resource that lies on a tray and may be lent. Returns how often it was lent, too.
    /// The clock is read only if there may be one.
    fn take(
        &self,
        site: &'static Location<'static>,
        now: impl FnOnce() -> Moment,
    ) -> Option<(R, u64)>;

    /// The next taker on this thread looks at this tray first.
    fn remember(&self, _: TrayNo) {}

    /// Writes a label on the lease of this slot. Returns it if the slot is not on this tray.
    fn label(&self, tray: TrayNo, slot: SlotNo, label: Label) -> Result<(), Label>;
}

/// The trays of a pool that many threads share.
pub(crate) struct Trays<R: Send + 'static> {
    /// Each is made when it is first needed. Few ever are.
    trays: Box<[OnceLock<TrayRef<R>>]>,
    /// How many are open. Written under the ledger's lock, and seldom.
    open: AtomicUsize,
    /// Tells the trays of one pool from those of another.
    number: u64,
}

/// For how many pools a thread remembers a tray. A caller that alternates between two pools takes
/// 30 ns for a trip; without a hint for each it was 350.
const HINTS: usize = 16;

thread_local! {
    /// By pool: the tray on which this thread last laid something back, or found something.
    static HINT: [Cell<(u64, TrayNo)>; HINTS] = const { [const { Cell::new((0, 0)) }; HINTS] };
}

impl<R: Send + 'static> AnyTrays<R> for Trays<R> {
    type Tray = TrayRef<R>;

    fn for_size(max_size: usize) -> Self {
        static BUILT: AtomicU64 = AtomicU64::new(1);
        Self {
            trays: (0..max_size.min(MOST)).map(|_| OnceLock::new()).collect(),
            open: AtomicUsize::new(0),
            number: BUILT.fetch_add(1, Ordering::Relaxed),
        }
    }

    fn len(&self) -> usize {
        self.trays.len()
    }

    fn open(&self, tray: TrayNo, on_tray: OnTray<R>) -> TrayRef<R> {
        let tray = *self.trays[tray as usize].get_or_init(immortal::take);
        tray.open(on_tray);
        self.open.fetch_add(1, Ordering::Relaxed);
        tray
    }

    fn close(&self, tray: TrayNo) -> Option<OnTray<R>> {
        let off = self.trays[tray as usize].get()?.close()?;
        self.open.fetch_sub(1, Ordering::Relaxed);
        Some(off)
    }

    /// Looks first at the tray that this thread used last.
    #[inline(always)]
    fn take(
        &self,
        site: &'static Location<'static>,
        now: impl FnOnce() -> Moment,
    ) -> Option<(R, u64)> {
        if self.open.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let now = now();
        let first = self.hint();
        let tray = self.trays.get(first as usize)?.get();
        match tray.and_then(|tray| tray.take(site, now)) {
            None => self.take_another(first, site, now),
            taken => taken,
        }
    }

    #[inline]
    fn remember(&self, tray: TrayNo) {
        // A lease may be dropped while its thread ends.
        let _ = HINT.try_with(|hints| hints[self.number as usize % HINTS].set((self.number, tray)));
    }

    fn label(&self, tray: TrayNo, slot: SlotNo, label: Label) -> Result<(), Label> {
        match self.trays[tray as usize].get() {
            Some(tray) => tray.label(slot, label),
            None => Err(label),
        }
    }
}

impl<R: Send + 'static> Trays<R> {
    #[inline(never)]
    fn take_another(
        &self,
        first: TrayNo,
        site: &'static Location<'static>,
        now: Moment,
    ) -> Option<(R, u64)> {
        for probe in 1..PROBES.min(self.trays.len()) {
            let number = (first as usize + probe) % self.trays.len();
            let tray = self.trays[number].get();
            if let Some(taken) = tray.and_then(|tray| tray.take(site, now)) {
                self.remember(number as TrayNo);
                return Some(taken);
            }
        }
        None
    }

    #[inline]
    fn hint(&self) -> TrayNo {
        HINT.with(|hints| match hints[self.number as usize % HINTS].get() {
            (number, tray) if number == self.number => tray,
            _ => 0,
        })
    }
}

pub(crate) type TrayRef<R> = &'static Tray<R>;

impl<R: Send + 'static> Drop for Trays<R> {
    fn drop(&mut self) {
        let trays = mem::take(&mut self.trays);
        immortal::leave(trays.into_iter().filter_map(OnceLock::into_inner));
    }
}
