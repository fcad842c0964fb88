//! Operations on the whole pool that call user code, or wait.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::carry_out::Place;
use super::kind::{ErrorOf, Kind, ResourceOf};
use super::shared::PoolRef;
use super::upkeep_task;
use super::watcher::Watcher;
use crate::config::{ConfigError, WarmUp};
use crate::error::WarmError;
use crate::ledger::Outcome;
use crate::status::{CloseReason, Leftover};
use crate::time;

impl<K: Kind> PoolRef<K> {
    pub(crate) fn resize(&self, max_size: usize) -> Result<(), ConfigError> {
        self.limits.check_resize(max_size)?;
        let from = self.order(K::here(), |ledger, now, orders| {
            ledger.resize(max_size, now, orders)
        });
        self.observers.resized(from, max_size);
        self.uppers.tell();
        Ok(())
    }

    /// Closes the idle resources for which `keep` returns false.
    pub(crate) fn retain(&self, keep: &mut impl FnMut(&mut ResourceOf<K>) -> bool) {
        let idle = self.ledger_off_trays().idle();
        for (slot, id) in idle {
            let mut ledger = self.ledger_off_trays();
            let looked_at = ledger.look_at(slot, id, time::now());
            drop(ledger);
            let Some(mut pooled) = looked_at else {
                continue;
            };
            let kept = catch_unwind(AssertUnwindSafe(|| keep(&mut pooled.resource)));
            let refused = Outcome::Unfit(CloseReason::Refused);
            self.order(K::here(), |ledger, now, orders| match kept {
                Ok(false) => {
                    ledger.judged(slot, pooled, refused, now, orders);
                }
                Ok(true) | Err(_) => ledger.put_back(slot, pooled, now, orders),
            });
            if let Err(panic) = kept {
                resume_unwind(panic);
            }
        }
    }

    /// Opens resources until there are as many as the settings want.
    pub(crate) async fn warm(&self) -> Result<(), WarmError<ErrorOf<K>>> {
        let started = time::now();
        let before = self.ledger_off_trays().status(started);
        let mut watcher = Watcher::new(self);
        let warmed = poll_fn(|context| {
            if !upkeep_task::start(self) {
                return Poll::Ready(Err(WarmError::NoLocalSet));
            }
            watcher.watch(context);
            self.order(Place::Task, |ledger, now, orders| {
                ledger.warm(before.open_failed, now, orders)
            })
        })
        .await;
        let now = time::now();
        let opened = self.ledger_off_trays().status(now).opened - before.opened;
        let took = now.saturating_duration_since(started);
        self.observers.warmed(opened, took, warmed.is_ok());
        match warmed {
            Err(WarmError::Open(_)) if self.limits.warm_up == WarmUp::BestEffort => Ok(()),
            warmed => warmed,
        }
    }

    /// Closes the pool, and waits until all resources are closed.
    pub(crate) async fn close_within(&self, limit: Duration) -> Leftover {
        let _ = upkeep_task::start(self);
        let began = time::now();
        let failed = self.ledger_off_trays().status(began).close_failed;
        self.close(Place::Task);
        let mut timer = pin!(time::sleep_until(began.checked_add(limit)));
        let mut watcher = Watcher::new(self);
        poll_fn(|context| {
            watcher.watch(context);
            let drained = self.order(Place::Task, |ledger, now, orders| {
                ledger.end(orders, now);
                ledger.is_drained()
            });
            if drained {
                Poll::Ready(())
            } else {
                timer.as_mut().poll(context)
            }
        })
        .await;
        let now = time::now();
        let left = {
            let ledger = self.ledger_off_trays();
            Leftover {
                leases: ledger.holders(now),
                unfinished: ledger.unfinished(),
                close_failed: ledger.status(now).close_failed - failed,
            }
        };
        self.log_end(&left, now.saturating_duration_since(began));
        left
    }
}
