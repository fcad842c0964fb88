//! Allocations that are never freed, so that a `&'static` to them needs no reference count. A dropped pool puts its own on a free list for the
//! next pool of the same type.

#[cfg(not(cenote_model))]
pub(crate) use lasting::{Kept, leave, take};

#[cfg(cenote_model)]
pub(crate) use passing::{Kept, leave, take};

#[cfg(not(cenote_model))]
mod lasting {
    use std::any::{Any, TypeId};
    use std::collections::BTreeMap;

    use crate::sync::{Mutex, PoisonError};

    pub(crate) type Kept<T> = &'static T;

    /// A free list for each type.
    static SPARE: Mutex<BTreeMap<TypeId, Box<dyn Any + Send>>> = Mutex::new(BTreeMap::new());

    /// One from the free list, or a new one.
    pub(crate) fn take<T: Default + Sync + 'static>() -> Kept<T> {
        with_spare(Vec::pop).unwrap_or_else(|| Box::leak(Box::default()))
    }

    pub(crate) fn leave<T: Sync + 'static>(left: impl Iterator<Item = Kept<T>>) {
        with_spare(|spare| spare.extend(left));
    }

    fn with_spare<T: Sync + 'static, A>(change: impl FnOnce(&mut Vec<Kept<T>>) -> A) -> A {
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        let list = spare
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Box::new(Vec::<Kept<T>>::new()));
        let list = list.downcast_mut();
        change(list.expect("bug: the free lists are kept by type"))
    }
}

/// Memory of one run of a model must not be seen by the next.
#[cfg(cenote_model)]
mod passing {
    use std::sync::Arc;

    pub(crate) type Kept<T> = Arc<T>;

    pub(crate) fn take<T: Default>() -> Kept<T> {
        Arc::default()
    }

    pub(crate) fn leave<T>(_: impl Iterator<Item = Kept<T>>) {}
}
