//! Locks, atomics and threads: from the standard library, or from shuttle where the core is model checked.

pub(crate) use std::sync::PoisonError;
/// The standard library's in both worlds: a counter that nothing waits for.
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64};

/// On cache lines of its own, so that writing to it does not slow down cores that read its neighbours.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct CachePadded<T>(pub(crate) T);

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

/// A lock that is held for a few instructions and nearly always free. It is released by a plain store, at half the price of a mutex.
#[cfg(not(cenote_model))]
pub(crate) type SpinLock<T> = spin::mutex::SpinMutex<T, spin::relax::Yield>;

/// The same, with what shuttle can see.
#[cfg(cenote_model)]
#[derive(Debug)]
pub(crate) struct SpinLock<T>(Mutex<T>);

#[cfg(cenote_model)]
impl<T> SpinLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}

/// Threads of the model. Their timeouts are the model's timers.
#[cfg(cenote_model)]
pub(crate) mod thread {
    pub(crate) use shuttle::thread::{Thread, current};

    pub(crate) use crate::rt::park_timeout;
}
