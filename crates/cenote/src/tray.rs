//! The trays: where a resource lies between two users while nobody waits.
//!
//! A slot that is set aside changes hands by its tray alone. Such a trip opens no book and writes to no memory but the tray's own, so
//! that cores which keep to their own trays do not slow each other down. Whoever needs the truth about all slots closes the trays
//! first, under the book's lock; a tray that is closed sends everybody to the book. The lock of a tray is the only thing that
//! decides between the two, and no other lock is taken under it.

#[cfg(test)]
mod tests;

use std::any::Any;
use std::borrow::Cow;
use std::cell::Cell;

use crate::ledger::{Asker, Fetched, SlotNo, Terms};
use crate::moment::{Moment, nanoseconds};
use crate::rt::Home;
use crate::sync::{AtomicU64, AtomicUsize, Latch, Ordering};

/// More are seldom in use at once by those who do not wait, and each costs memory and a look.
const MOST: usize = 64;

/// A box that only its pool can open again.
type Parcel = Box<dyn Any + Send>;

/// One slot's tray. On cache lines of its own: neighbours are used by other cores.
#[repr(align(64))]
pub(crate) struct Tray(Latch<Option<Open>>);

/// What is known of a slot while it is set aside.
struct Open {
    /// Present while nobody has it.
    parcel: Option<Parcel>,
    /// Until when it may change hands as it is, how long it may lie, and how often it may be lent.
    fit_until: Moment,
    stale_after: u64,
    most_uses: u64,
    home: Option<Home>,
    asker: Asker,
    label: Option<Cow<'static, str>>,
    /// Since when it is lent, or was lent last.
    since: Moment,
    used_at: Moment,
    uses: u64,
    released: u64,
}

impl Tray {
    fn new() -> Self {
        Self(Latch::new(None))
    }

    fn open(&self, terms: Terms, asker: Asker, uses: u64, now: Moment) {
        let before = self.0.lock().replace(Open {
            parcel: None,
            fit_until: terms.fit_until.unwrap_or(Moment::NEVER),
            stale_after: terms.check_after_idle.map_or(u64::MAX, nanoseconds),
            most_uses: terms.most_uses,
            home: terms.home,
            asker,
            label: None,
            since: now,
            used_at: now,
            uses,
            released: 0,
        });
        debug_assert!(before.is_none(), "bug: a tray was opened twice");
    }

    fn close<R: 'static>(&self) -> Option<Fetched<Box<R>>> {
        let open = self.0.lock().take()?;
        Some(Fetched {
            resource: open.parcel.map(unpack),
            asker: open.asker,
            label: open.label,
            since: open.since,
            used_at: (open.released > 0).then_some(open.used_at),
            uses: open.uses,
            released: open.released,
        })
    }

    /// Takes what lies here, if it may be lent as it is. Answers with how often it was lent, too.
    #[inline]
    fn take<R: 'static>(&self, asker: Asker, now: Moment) -> Option<(Box<R>, u64)> {
        let mut tray = self.0.try_lock()?;
        let open = tray.as_mut()?;
        if open.parcel.is_none() || !open.may_be_lent(now) {
            return None;
        }
        open.asker = asker;
        open.since = now;
        open.uses += 1;
        Some((unpack(open.parcel.take()?), open.uses))
    }

    /// Lays back what was lent. Answers with how many nanoseconds it was out; or it is not for this tray any more, and here it is again.
    #[inline]
    pub(crate) fn lay_back<R: Send + 'static>(
        &self,
        resource: Box<R>,
        now: Moment,
    ) -> Result<u64, Box<R>> {
        let mut tray = self.0.lock();
        let Some(open) = tray.as_mut().filter(|open| open.may_come_back(now)) else {
            return Err(resource);
        };
        open.parcel = Some(resource);
        open.used_at = now;
        open.released += 1;
        let held = now.nanoseconds_since(open.since);
        let label = open.label.take();
        drop(tray);
        drop(label);
        Ok(held)
    }

    /// Writes a label on what is lent. Gives it back if the tray is closed.
    pub(crate) fn label(&self, label: Cow<'static, str>) -> Result<(), Cow<'static, str>> {
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

fn unpack<R: 'static>(parcel: Parcel) -> Box<R> {
    parcel
        .downcast()
        .expect("bug: a tray belongs to one pool at a time")
}

impl Open {
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
pub(crate) struct Trays {
    trays: Box<[TrayRef]>,
    /// How many are open. Written under the book's lock, and seldom.
    open: AtomicUsize,
    /// Tells the trays of one pool from those of another.
    number: u64,
}

thread_local! {
    /// The trays that were used last here, and which of them: it is the hottest, and nobody else's.
    static LAST: Cell<(u64, SlotNo)> = const { Cell::new((0, 0)) };
}

impl Trays {
    /// For a pool of this size.
    pub(crate) fn for_size(max_size: usize) -> Self {
        static BUILT: AtomicU64 = AtomicU64::new(1);
        Self {
            trays: spare::take(max_size.min(MOST)),
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
    ) -> TrayRef {
        let tray = TrayRef::clone(&self.trays[slot]);
        tray.open(terms, asker, uses, now);
        self.open.fetch_add(1, Ordering::Relaxed);
        tray
    }

    /// Ends the time aside of a slot, and tells what has happened. `None`: it was not. Under the book's lock.
    pub(crate) fn close<R: 'static>(&self, slot: SlotNo) -> Option<Fetched<Box<R>>> {
        let fetched = self.trays[slot].close()?;
        self.open.fetch_sub(1, Ordering::Relaxed);
        Some(fetched)
    }

    /// Takes what lies on a tray and may be lent, looking first where this thread was last.
    #[inline]
    pub(crate) fn take<R: 'static>(&self, asker: Asker, now: Moment) -> Option<(Box<R>, u64)> {
        let first = match LAST.get() {
            (number, slot) if number == self.number => slot,
            _ => 0,
        };
        match self.trays.get(first)?.take(asker, now) {
            None => self.take_another(first, asker, now),
            taken => taken,
        }
    }

    #[cold]
    fn take_another<R: 'static>(
        &self,
        first: SlotNo,
        asker: Asker,
        now: Moment,
    ) -> Option<(Box<R>, u64)> {
        let slots = (first + 1..self.trays.len()).chain(0..first);
        for slot in slots {
            if let Some(taken) = self.trays[slot].take(asker, now) {
                LAST.set((self.number, slot));
                return Some(taken);
            }
        }
        None
    }
}

/// A tray stays where it is for the life of the program, so that one who lays something back need not keep the pool alive meanwhile: the
/// reference that did goes into the parcel. A pool that ends leaves its trays to the next.
#[cfg(not(cenote_model))]
pub(crate) type TrayRef = &'static Tray;

#[cfg(not(cenote_model))]
mod spare {
    use super::{Tray, TrayRef};
    use crate::sync::{Mutex, PoisonError};

    static SPARE: Mutex<Vec<TrayRef>> = Mutex::new(Vec::new());

    pub(super) fn take(count: usize) -> Box<[TrayRef]> {
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        let left = spare.len().saturating_sub(count);
        let mut trays = spare.split_off(left);
        drop(spare);
        trays.resize_with(count, || Box::leak(Box::new(Tray::new())));
        trays.into()
    }

    pub(super) fn leave(trays: &[TrayRef]) {
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        spare.extend_from_slice(trays);
    }
}

/// What belongs to one run of a model must not be seen by the next.
#[cfg(cenote_model)]
pub(crate) type TrayRef = std::sync::Arc<Tray>;

#[cfg(cenote_model)]
mod spare {
    use super::{Tray, TrayRef};

    pub(super) fn take(count: usize) -> Box<[TrayRef]> {
        (0..count).map(|_| TrayRef::new(Tray::new())).collect()
    }

    pub(super) fn leave(_: &[TrayRef]) {}
}

impl Drop for Trays {
    fn drop(&mut self) {
        spare::leave(&self.trays);
    }
}
