//! Where locks, atomics and threads come from: the standard library, or shuttle where the core is model checked.

pub(crate) use std::sync::PoisonError;
/// The standard library's in both worlds: a counter that nothing waits for.
pub(crate) use std::sync::atomic::AtomicU64;

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

/// Threads of the model. Their timeouts are the model's timers.
#[cfg(cenote_model)]
pub(crate) mod thread {
    pub(crate) use shuttle::thread::{Thread, current};

    pub(crate) use crate::rt::park_timeout;
}
