//! Allocations that are never freed, so that a `&'static` to them needs no reference count. A
//! dropped pool puts its own on a free list for the next pool of the same type.
//!
//! With a reference count in its place, two cores that use two trays would write to one cache line
//! on every trip.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// A free list for each type.
static SPARE: Mutex<BTreeMap<TypeId, Box<dyn Any + Send>>> = Mutex::new(BTreeMap::new());

/// An allocation from the free list, or a new one.
pub(crate) fn take<T: Default + Sync + 'static>() -> &'static T {
    with_spare(Vec::pop).unwrap_or_else(|| Box::leak(Box::default()))
}

/// Puts allocations on the free list.
pub(crate) fn leave<T: Sync + 'static>(left: impl Iterator<Item = &'static T>) {
    // One run of a model must not see the memory of another.
    if cfg!(not(cenote_model)) {
        with_spare(|spare| spare.extend(left));
    }
}

fn with_spare<T: Sync + 'static, A>(change: impl FnOnce(&mut Vec<&'static T>) -> A) -> A {
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    let list = spare
        .entry(TypeId::of::<T>())
        .or_insert_with(|| Box::new(Vec::<&'static T>::new()));
    let list = list.downcast_mut();
    change(list.expect("bug: the free lists are kept by type"))
}
