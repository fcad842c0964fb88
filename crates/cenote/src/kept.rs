//! What stays where it is for the life of the program, so that one who has it in hand need not keep its pool alive meanwhile. A pool that
//! ends leaves its own to the next.

#[cfg(not(cenote_model))]
pub(crate) use lasting::{Kept, leave, take, take_some};

#[cfg(cenote_model)]
pub(crate) use passing::{Kept, leave, take, take_some};

#[cfg(not(cenote_model))]
mod lasting {
    use std::any::{Any, TypeId};
    use std::collections::BTreeMap;

    use crate::sync::{Mutex, PoisonError};

    pub(crate) type Kept<T> = &'static T;

    /// By their type: a list each.
    static SPARE: Mutex<BTreeMap<TypeId, Box<dyn Any + Send>>> = Mutex::new(BTreeMap::new());

    /// One that somebody left, or a new one.
    pub(crate) fn take<T: Default + Sync + 'static>() -> Kept<T> {
        with_spare(Vec::pop).unwrap_or_else(|| Box::leak(Box::default()))
    }

    /// So many of them.
    pub(crate) fn take_some<T: Default + Sync + 'static>(count: usize) -> Vec<Kept<T>> {
        let mut taken = with_spare(|spare| spare.split_off(spare.len().saturating_sub(count)));
        taken.resize_with(count, || Box::leak(Box::default()));
        taken
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
        change(list.expect("bug: what is spare is kept by its type"))
    }
}

/// What belongs to one run of a model must not be seen by the next.
#[cfg(cenote_model)]
mod passing {
    use std::sync::Arc;

    pub(crate) type Kept<T> = Arc<T>;

    pub(crate) fn take<T: Default>() -> Kept<T> {
        Arc::default()
    }

    pub(crate) fn take_some<T: Default>(count: usize) -> Vec<Kept<T>> {
        (0..count).map(|_| take()).collect()
    }

    pub(crate) fn leave<T>(_: impl Iterator<Item = Kept<T>>) {}
}
