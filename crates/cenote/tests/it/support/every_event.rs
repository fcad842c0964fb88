//! The list of every event of an observer: its method and its type.

/// Calls `$with!` with the list.
macro_rules! every_event {
    ($with:ident) => {
        $with! {
            pool_opened: PoolOpened,
            pool_closed: PoolClosed,
            opening: Opening,
            opened: Opened,
            open_failed: OpenFailed,
            acquired: Acquired,
            released: Released,
            discarded: Discarded,
            detached: Detached,
            closed: Closed,
            callback_failed: CallbackFailed,
            timed_out: AcquireTimedOut,
            leaked: Leaked,
            returned_late: ReturnedLate,
            nested_acquire: NestedAcquire,
            breaker_changed: BreakerChanged,
            resized: Resized,
        }
    };
}

pub(crate) use every_event;
