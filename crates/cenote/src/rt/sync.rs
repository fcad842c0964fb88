//! Locks, atomics and threads: from the standard library, or from shuttle where the core is model
//! checked.

pub(crate) use std::sync::PoisonError;
/// Counters that no thread waits for. They are the standard library's in models, too.
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64};

/// On cache lines of its own, so that writing to it does not slow down cores that read its
/// neighbours.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct CachePadded<T>(pub(crate) T);

impl<T> From<T> for CachePadded<Mutex<T>> {
    fn from(inside: T) -> Self {
        Self(Mutex::new(inside))
    }
}

#[cfg(not(cenote_model))]
pub(crate) use std::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

#[cfg(cenote_model)]
pub(crate) use shuttle::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// A lock that is held for a few instructions and nearly always free. It is released by a plain
/// store, and so costs half as much as a mutex.
#[cfg(not(cenote_model))]
pub(crate) type SpinLock<T> = spin::mutex::SpinMutex<T, spin::relax::Yield>;

#[cfg(cenote_model)]
pub(crate) use super::on_shuttle::{SpinLock, threads as thread};
