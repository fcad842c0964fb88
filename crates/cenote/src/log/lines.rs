//! The lines: one for each thing that an operator should know. Lines that can come in storms are
//! limited, and the next line says how many were suppressed.

use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tracing::level_filters::LevelFilter;
use tracing::{Level, debug, event_enabled, info, warn};

use super::limit::Limit;
use crate::advice::{self, Advice, Facts};
use crate::breaker::BreakerState;
use crate::event::{
    BreakerChanged, Callback, CallbackFailed, Closed, Leaked, NestedAcquire, Observer, OpenFailed,
    Opened, PoolClosed, Resized, ReturnedLate, Warmed,
};
use crate::status::{Holder, Leftover};
use crate::time;
use crate::timed_out::{Seen, TimedOut};

/// The log of one pool.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Slow acquires and timeouts, which come together.
    waits: Limit,
    opens: Limit,
    callbacks: Limit,
    /// Opens that have failed since one succeeded.
    failures: AtomicU64,
}

impl Log {
    /// Returns whether there is a subscriber at all.
    #[inline]
    pub(crate) fn is_on() -> bool {
        LevelFilter::current() != LevelFilter::OFF
    }

    /// An acquire timed out. Written in place of a line for the event, which knows less.
    pub(crate) fn acquire_timed_out<E>(
        &self,
        site: &'static Location<'static>,
        error: &TimedOut<E>,
        leak_after: Option<Duration>,
    ) {
        if !event_enabled!(target: "cenote", Level::WARN) {
            return;
        }
        let Some(more) = self.waits.pass(time::now()) else {
            return;
        };
        let status = error.status();
        let advice = advice::held(status, error.holders(), leak_after);
        warn!(
            target: "cenote",
            pool = error.pool(),
            %site,
            waited = ?error.waited(),
            phase = ?error.phase(),
            in_use = status.in_use,
            waiting = status.waiting,
            nested = error.is_nested(),
            advice = joined(&advice),
            suppressed = more.field(),
            "acquire timed out: {error}{more}",
        );
    }

    /// An acquire has waited for longer than `slow_acquire`, and waits.
    pub(crate) fn slow(
        &self,
        pool: &str,
        site: &'static Location<'static>,
        waited: Duration,
        facts: impl FnOnce() -> Facts,
    ) {
        if !event_enabled!(target: "cenote", Level::WARN) {
            return;
        }
        let Some(more) = self.waits.pass(time::now()) else {
            return;
        };
        let facts = facts();
        let seen = Seen {
            status: &facts.status,
            holders: &facts.holders,
        };
        warn!(
            target: "cenote",
            pool,
            %site,
            ?waited,
            in_use = facts.status.in_use,
            waiting = facts.status.waiting,
            advice = joined(&advice::present(&facts, None)),
            suppressed = more.field(),
            "slow acquire: pool `{pool}`: no resource for {waited:.1?} by now: {seen}{more}",
        );
    }

    /// `close_within` has ended.
    pub(crate) fn ended(&self, pool: &str, left: &Leftover, took: Duration) {
        if left.is_empty() {
            let close_failed = left.close_failed;
            info!(target: "cenote", pool, ?took, close_failed, "closed in order: {left}");
        } else {
            let (leases, unfinished) = (left.leases.len(), left.unfinished);
            info!(
                target: "cenote",
                pool,
                ?took,
                leases,
                unfinished,
                "closed with leftovers: {left}",
            );
        }
    }

    /// Says how many lines were suppressed, where no further line has said it.
    pub(crate) fn flush(&self, pool: &str) {
        let now = time::now();
        let kinds = [
            (&self.waits, "slow acquires and timeouts"),
            (&self.opens, "failed opens"),
            (&self.callbacks, "failed callbacks"),
        ];
        for (limit, kind) in kinds {
            if let Some(suppressed) = limit.flush(now) {
                warn!(target: "cenote", pool, suppressed, "{suppressed} {kind} were not logged");
            }
        }
    }
}

impl Observer for Log {
    fn pool_closed(&self, event: &PoolClosed<'_>) {
        let PoolClosed { pool, in_use, .. } = event;
        match in_use {
            0 => info!(target: "cenote", pool, in_use, "pool closed: no lease is out"),
            _ => info!(target: "cenote", pool, in_use, "pool closed: {in_use} leases are out"),
        }
        self.flush(pool);
    }

    fn opened(&self, event: &Opened<'_>) {
        let Opened { pool, id, took, .. } = event;
        debug!(target: "cenote", pool, id, ?took, "opened");
        // Most opens follow no failure, and a load is cheaper than a swap.
        if self.failures.load(Relaxed) > 0 {
            let failures = self.failures.swap(0, Relaxed);
            info!(
                target: "cenote",
                pool,
                id,
                failures,
                "opens succeed again, after {failures} failures",
            );
        }
    }

    fn open_failed(&self, event: &OpenFailed<'_>) {
        self.failures.fetch_add(1, Relaxed);
        if !event_enabled!(target: "cenote", Level::WARN) {
            return;
        }
        let Some(more) = self.opens.pass(time::now()) else {
            return;
        };
        let OpenFailed {
            pool, took, error, ..
        } = event;
        warn!(
            target: "cenote",
            pool,
            ?took,
            cause = %error,
            suppressed = more.field(),
            "{error}{more}",
        );
    }

    fn closed(&self, event: &Closed<'_>) {
        let Closed {
            pool, id, reason, ..
        } = event;
        debug!(target: "cenote", pool, id, %reason, "closed: {reason}");
    }

    fn callback_failed(&self, event: &CallbackFailed<'_>) {
        let CallbackFailed {
            pool,
            id,
            callback,
            message,
            ..
        } = event;
        let wanted = match callback {
            Callback::Close => event_enabled!(target: "cenote", Level::WARN),
            _ => event_enabled!(target: "cenote", Level::DEBUG),
        };
        if !wanted {
            return;
        }
        let Some(more) = self.callbacks.pass(time::now()) else {
            return;
        };
        let suppressed = more.field();
        match callback {
            Callback::Close => warn!(
                target: "cenote",
                pool,
                id,
                cause = message,
                suppressed,
                "closing failed: {message}{more}",
            ),
            _ => debug!(
                target: "cenote",
                pool,
                id,
                ?callback,
                cause = message,
                suppressed,
                "callback failed: {callback:?}: {message}{more}",
            ),
        }
    }

    fn warmed(&self, event: &Warmed<'_>) {
        let Warmed {
            pool,
            opened,
            took,
            complete,
            ..
        } = event;
        let how = if *complete {
            "warmed up"
        } else {
            "not warmed up"
        };
        info!(target: "cenote", pool, opened, ?took, complete, "{how}: {opened} opened in {took:.1?}");
    }

    fn leaked(&self, event: &Leaked<'_>) {
        let Leaked { pool, holder, .. } = event;
        warn!(
            target: "cenote",
            pool,
            id = holder.id,
            site = %holder.site,
            held = ?holder.held_for,
            task = holder.task.map(tracing::field::display),
            label = holder.label.as_deref(),
            "leak: {holder}",
        );
    }

    fn returned_late(&self, event: &ReturnedLate<'_>) {
        let ReturnedLate {
            pool,
            id,
            held,
            site,
            ..
        } = event;
        info!(
            target: "cenote",
            pool,
            id,
            %site,
            ?held,
            "returned after all: resource {id} at {site} after {held:.1?}",
        );
    }

    fn nested_acquire(&self, event: &NestedAcquire<'_>) {
        let NestedAcquire {
            pool,
            site,
            holders,
            ..
        } = event;
        warn!(
            target: "cenote",
            pool,
            %site,
            holders = holders.len(),
            "nested acquire: every lease was taken by a task that now waits for this pool: take \
             one lease per task and pass it along; held: {}",
            List(holders),
        );
    }

    fn breaker_changed(&self, event: &BreakerChanged<'_>) {
        let BreakerChanged {
            pool,
            from,
            to,
            cause,
            ..
        } = event;
        match to {
            BreakerState::Inactive => warn!(
                target: "cenote",
                pool,
                %from,
                %to,
                cause = cause.map(tracing::field::display),
                "breaker tripped: every acquire fails until it recovers{}",
                Because(*cause),
            ),
            BreakerState::Active => {
                info!(target: "cenote", pool, %from, %to, "breaker active: the pool lends again")
            }
            BreakerState::Recovering => {
                debug!(target: "cenote", pool, %from, %to, "breaker recovering")
            }
        }
    }

    fn resized(&self, event: &Resized<'_>) {
        let Resized { pool, from, to, .. } = event;
        info!(target: "cenote", pool, from, to, "resized from {from} to {to}");
    }
}

/// The advice as one field, which is left out if there is none.
fn joined(all: &[Advice]) -> Option<String> {
    let texts: Vec<_> = all.iter().map(|advice| advice.text.as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// How many leases a line names.
const NAMED: usize = 5;

struct List<'a>(&'a [Holder]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, holder) in self.0.iter().take(NAMED).enumerate() {
            write!(f, "{}{holder}", if nth == 0 { "" } else { ", " })?;
        }
        match self.0.len() {
            many if many > NAMED => write!(f, " and {} more", many - NAMED),
            _ => Ok(()),
        }
    }
}

struct Because<'a>(Option<&'a (dyn std::error::Error + 'static)>);

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(cause) => write!(f, ": {cause}"),
            None => Ok(()),
        }
    }
}
