//! The trays of a pool that belongs to one thread: without locks. No other code runs while one of
//! them is borrowed.

#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::rc::Rc;

use super::{AnyTrays, MOST};
use crate::ledger::{Label, OnTray, Resource, SlotNo, TrayNo};
use crate::time::Moment;

pub(crate) struct CellTrays<R> {
    count: usize,
    /// By number. Each is made when it is first needed. Few ever are.
    trays: RefCell<Vec<CellTray<R>>>,
    /// The resource that was laid back last. Apart from the others, because most trips take it and
    /// lay it back, and touch nothing else.
    last: Cell<Option<R>>,
    /// The other resources that lie ready. The one that was laid back last is at the end.
    others: RefCell<Vec<R>>,
}

/// One tray, without the resource that lies on it. Counted, so that a lease finds it without a look
/// at the list.
pub(crate) type CellTray<R> = Rc<RefCell<Option<OnTray<R>>>>;

/// A resource that knows the tray that its slot was put on.
pub(crate) trait OnCellTray: Resource + Sized {
    fn tray(&self) -> Option<&CellTray<Self>>;
}

impl<R: OnCellTray> CellTrays<R> {
    /// Lays back a resource. Returns since when it was out; or the resource, if it has to go to the
    /// ledger.
    #[inline(always)]
    pub(crate) fn lay_back(&self, resource: R, now: Moment) -> Result<Moment, R> {
        let Some(tray) = resource.tray() else {
            return Err(resource);
        };
        let mut tray = tray.borrow_mut();
        let slot = resource.slot();
        let is_open = |open: &&mut OnTray<R>| open.slot == slot && open.may_come_back(now);
        let Some(open) = tray.as_mut().filter(is_open) else {
            drop(tray);
            return Err(resource);
        };
        let since = open.came_back(now);
        let label = open.label.take();
        drop(tray);
        if let Some(former) = self.last.replace(Some(resource)) {
            self.others.borrow_mut().push(former);
        }
        drop(label);
        Ok(since)
    }

    /// Lends this resource, if it may be lent as it is.
    #[inline(always)]
    fn lend(resource: &R, site: &'static Location<'static>, now: Moment) -> Option<u64> {
        let mut tray = resource.tray()?.borrow_mut();
        let open = tray.as_mut()?;
        open.may_be_lent(now).then(|| open.lend(site, now))
    }

    /// Takes the resource that lies on this tray, if one does.
    fn pick_up(&self, tray: &CellTray<R>) -> Option<R> {
        let is_on = |one: &R| one.tray().is_some_and(|other| Rc::ptr_eq(other, tray));
        let others = &mut *self.others.borrow_mut();
        others.extend(self.last.take());
        let place = others.iter().position(is_on)?;
        Some(others.remove(place))
    }
}

impl<R: OnCellTray> AnyTrays<R> for CellTrays<R> {
    type Tray = CellTray<R>;

    fn for_size(max_size: usize) -> Self {
        Self {
            count: max_size.min(MOST),
            trays: RefCell::default(),
            last: Cell::new(None),
            others: RefCell::default(),
        }
    }

    fn len(&self) -> usize {
        self.count
    }

    fn open(&self, tray: TrayNo, on_tray: OnTray<R>) -> CellTray<R> {
        let trays = &mut *self.trays.borrow_mut();
        let tray = tray as usize;
        if trays.len() <= tray {
            trays.resize_with(tray + 1, CellTray::default);
        }
        let before = trays[tray].replace(Some(on_tray));
        debug_assert!(before.is_none(), "bug: a tray was opened twice");
        Rc::clone(&trays[tray])
    }

    fn close(&self, tray: TrayNo) -> Option<OnTray<R>> {
        let trays = self.trays.borrow();
        let tray = trays.get(tray as usize)?;
        let mut off = tray.take()?;
        off.resource = self.pick_up(tray);
        Some(off)
    }

    #[inline(always)]
    fn take(
        &self,
        site: &'static Location<'static>,
        now: impl FnOnce() -> Moment,
    ) -> Option<(R, u64)> {
        let another = || self.others.borrow_mut().pop();
        let resource = self.last.take().or_else(another)?;
        match Self::lend(&resource, site, now()) {
            Some(uses) => Some((resource, uses)),
            None => {
                self.last.set(Some(resource));
                None
            }
        }
    }

    fn label(&self, tray: TrayNo, slot: SlotNo, label: Label) -> Result<(), Label> {
        let trays = self.trays.borrow();
        let Some(tray) = trays.get(tray as usize) else {
            return Err(label);
        };
        let mut tray = tray.borrow_mut();
        let Some(open) = tray.as_mut().filter(|open| open.slot == slot) else {
            return Err(label);
        };
        let before = open.label.replace(label);
        drop(tray);
        drop(trays);
        drop(before);
        Ok(())
    }
}
