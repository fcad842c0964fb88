//! The driver: does the owed work, each piece in a task of the pool. The only place that awaits a
//! manager.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::carry_out::{Place, wake_all};
use super::guarded::{Mishap, guarded, guarded_now};
use super::kind::{ErrorOf, Kind, ResourceOf};
use super::pooled::Pooled;
use super::shared::{PoolLedger, PoolOrders, PoolRef, PoolWork, Shared};
use super::strategy::Evidence;
use super::watcher::Watcher;
use crate::breaker::{Failed, Failure};
use crate::error::{Cause, ErrorClass, OpenError};
use crate::event::Callback;
use crate::ledger::{AfterFailure, Job, Orders, Outcome, SlotNo, Work};
use crate::local_manager::LocalManager;
use crate::manager::LeaseEnd;
use crate::rt::Home;
use crate::status::CloseReason;
use crate::time::{self, Moment};

/// The future that does this piece of work. Dropped before it is done, it gives the slot back.
pub(crate) fn run<K: Kind>(
    shared: &PoolRef<K>,
    work: PoolWork<K>,
) -> impl Future<Output = ()> + use<K> {
    let Work { slot, job } = work;
    // Made outside of the future, which may be dropped before it was ever polled.
    let duty = Duty {
        shared: shared.clone(),
        slot,
        done: false,
    };
    async move {
        match job {
            Job::Open => duty.open().await,
            Job::Vet {
                resource,
                check,
                ask,
            } => duty.vet(resource, check, ask).await,
            Job::Clean {
                resource,
                clean,
                probe,
            } => duty.clean(resource, clean, probe).await,
            Job::Close { resource, reason } => duty.close(resource, reason).await,
        }
    }
}

/// The duty to report on a slot. Dropped unfulfilled, it reports that the slot's resource is lost.
struct Duty<K: Kind> {
    shared: PoolRef<K>,
    slot: SlotNo,
    done: bool,
}

impl<K: Kind> Drop for Duty<K> {
    fn drop(&mut self) {
        if !self.done {
            let slot = self.slot;
            self.shared.severers.remove(slot);
            self.shared.order(Place::Drop, |ledger, now, orders| {
                ledger.lost(slot, now, orders);
            });
        }
    }
}

impl<K: Kind> Duty<K> {
    async fn open(mut self) {
        let shared = self.shared.clone();
        let slot = self.slot;
        loop {
            let may_open = |ledger: &mut PoolLedger<K>, now, orders: &mut _| {
                ledger.may_open(slot, now, orders)
            };
            self.done = !shared.order(Place::Task, may_open);
            if self.done {
                return;
            }
            let started = time::now();
            shared.observers.opening();
            let opening = async { shared.manager.open().await };
            let ended = guarded(shared.limits.open_timeout, opening).await;
            let now = time::now();
            let took = now.saturating_duration_since(started);
            let (class, error) = match ended {
                Ok(Ok(mut resource)) => {
                    self.add_severer(&mut resource);
                    let pooled = Pooled::new(resource);
                    let id =
                        self.report(|ledger, now, orders| ledger.opened(slot, pooled, now, orders));
                    shared.observers.opened(id, took);
                    return;
                }
                Ok(Err(error)) => {
                    let class = self.classify(&error);
                    if class == ErrorClass::CalledOff {
                        let after = shared.order(Place::Task, |ledger, now, orders| {
                            ledger.called_off(slot, now, orders)
                        });
                        self.done = after == AfterFailure::GiveUp;
                        match after {
                            AfterFailure::GiveUp => return,
                            AfterFailure::Retry(delay) => self.pause(delay).await,
                        }
                        continue;
                    }
                    (class, OpenError::Failed(Cause::from(error)))
                }
                Err(Mishap::Overdue(limit)) => (ErrorClass::TimedOut, OpenError::TimedOut(limit)),
                Err(Mishap::Panicked(message)) => {
                    (ErrorClass::Panicked, OpenError::Panicked(message))
                }
            };
            let mut orders = Orders::default();
            let (is_full, after) = {
                let mut ledger = shared.ledger_off_trays();
                let is_full = class == ErrorClass::Overloaded && ledger.waits_for_places();
                let (error, orders) = (error.clone(), &mut orders);
                let after = match is_full {
                    true => ledger.overloaded(slot, error, now, orders),
                    false => ledger.open_failed(slot, error, now, orders),
                };
                (is_full, after)
            };
            self.done = after == AfterFailure::GiveUp;
            // The waiter that gets the error is woken first. The strategy is asked before another
            // open is begun.
            let rest = wake_all(orders);
            let failed = Failed {
                class,
                error: Some(&error),
                ..Failed::new(Failure::Open)
            };
            if !is_full {
                shared.report(Evidence::Failed(failed), Place::Task);
            }
            if let Some(rest) = rest {
                shared.carry_out_rest(*rest, Place::Task);
            }
            shared.observers.open_failed(took, &error);
            match after {
                AfterFailure::GiveUp => return,
                AfterFailure::Retry(delay) => self.pause(delay).await,
            }
        }
    }

    /// A severer that panics is none.
    fn add_severer(&self, resource: &mut ResourceOf<K>) {
        let severer = guarded_now(|| self.shared.manager.severer(resource));
        if let Ok(Some(severer)) = severer {
            self.shared.severers.add(self.slot, severer);
        }
    }

    /// The back-off between two tries. It ends when another try has succeeded, or the pool closes.
    async fn pause(&self, delay: Duration) {
        let mut timer = pin!(time::sleep_until(time::now().checked_add(delay)));
        let mut watcher = Watcher::new(&self.shared);
        poll_fn(|context| {
            watcher.watch(context);
            let is_over = {
                let ledger = self.shared.ledger();
                ledger.is_closed() || !ledger.is_failing()
            };
            if is_over {
                Poll::Ready(())
            } else {
                timer.as_mut().poll(context)
            }
        })
        .await;
    }

    async fn vet(mut self, mut pooled: Box<Pooled<K>>, check: bool, ask: bool) {
        let vetted = self.look(&mut pooled, check, ask).await;
        if check {
            // It was proven alive here, whatever became of the runtime that it was opened on.
            pooled.home = Home::here();
        }
        let outcome = match &vetted {
            Ok(()) if ask => Outcome::Fit,
            Ok(()) => Outcome::Alive,
            Err((reason, _)) => Outcome::Unfit(*reason),
        };
        let proved = self.judged(pooled, outcome);
        match &vetted {
            Ok(()) if proved => {
                let accepted = Evidence::Accepted { probe: true };
                self.shared.report(accepted, Place::Task);
            }
            Ok(()) => {}
            Err((_, trouble)) => {
                let failed = Evidence::Failed(trouble.failed(Failure::Check));
                self.shared.report(failed, Place::Task);
            }
        }
    }

    async fn look(&self, pooled: &mut Pooled<K>, check: bool, ask: bool) -> Vetted {
        let Pooled { id, resource, .. } = pooled;
        if self.is_broken(*id, resource) {
            return Err((CloseReason::Broken, Trouble::default()));
        }
        if check {
            self.check(*id, resource).await?;
        }
        if ask {
            self.ask(*id, resource, Callback::BeforeAcquire).await?;
        }
        Ok(())
    }

    async fn clean(mut self, mut pooled: Box<Pooled<K>>, clean: bool, probe: bool) {
        let shared = self.shared.clone();
        let cleaned = self.make_fit(&mut pooled, clean).await;
        let (outcome, evidence) = match &cleaned {
            Ok(()) => (Outcome::Fit, Evidence::Accepted { probe }),
            Err((reason, trouble)) => {
                let failed = trouble.failed(Failure::Return);
                (Outcome::Unfit(*reason), Evidence::Failed(failed))
            }
        };
        self.judged(pooled, outcome);
        shared.report(evidence, Place::Task);
    }

    async fn make_fit(&self, pooled: &mut Pooled<K>, clean: bool) -> Vetted {
        let Pooled { id, resource, .. } = pooled;
        if clean {
            self.make_clean(*id, resource).await?;
        }
        if self.shared.limits.check_on_return {
            self.check(*id, resource).await?;
        }
        self.ask(*id, resource, Callback::BeforeRelease).await
    }

    async fn close(mut self, pooled: Box<Pooled<K>>, reason: CloseReason) {
        let id = pooled.id;
        let shared = self.shared.clone();
        let slot = self.slot;
        shared.severers.remove(slot);
        let closing = async { shared.manager.close(pooled.resource).await };
        let ended = guarded(Some(shared.limits.close_timeout), closing).await;
        let failed = !matches!(ended, Ok(Ok(())));
        self.report(|ledger, now, orders| ledger.closed(slot, failed, now, orders));
        let _ = self.told(
            id,
            Callback::Close,
            ended.map(|closed| self.trouble(closed)),
        );
        shared.observers.closed(id, reason);
    }

    fn is_broken(&self, id: u64, resource: &mut ResourceOf<K>) -> bool {
        let manager = &self.shared.manager;
        let seen = guarded_now(|| manager.is_broken(resource, LeaseEnd::Idle));
        seen.unwrap_or_else(|mishap| self.told(id, Callback::Inspect, Err(mishap)).is_err())
    }

    async fn check(&self, id: u64, resource: &mut ResourceOf<K>) -> Vetted {
        let checking = async { self.shared.manager.check(resource).await };
        let ended = guarded(Some(self.shared.limits.check_timeout), checking).await;
        let ended = self.told(
            id,
            Callback::Check,
            ended.map(|checked| self.trouble(checked)),
        );
        ended.map_err(|trouble| (CloseReason::FailedCheck, trouble))
    }

    async fn make_clean(&self, id: u64, resource: &mut ResourceOf<K>) -> Vetted {
        let cleaning = async { self.shared.manager.clean(resource).await };
        let ended = guarded(Some(self.shared.limits.clean_timeout), cleaning).await;
        let ended = self.told(
            id,
            Callback::Clean,
            ended.map(|cleaned| self.trouble(cleaned)),
        );
        ended.map_err(|trouble| (CloseReason::FailedClean, trouble))
    }

    /// Asks a hook, if there is one.
    async fn ask(&self, id: u64, resource: &mut ResourceOf<K>, callback: Callback) -> Vetted {
        let Shared { hooks, limits, .. } = &*self.shared;
        let (hook, limit) = match callback {
            Callback::BeforeAcquire => (&hooks.before_acquire, limits.check_timeout),
            _ => (&hooks.before_release, limits.clean_timeout),
        };
        let Some(hook) = hook else { return Ok(()) };
        let ended = guarded(Some(limit), async { K::ask(hook, resource).await }).await;
        let ended = ended.map(|yes| (!yes).then(|| Trouble::of("returned false")));
        let ended = self.told(id, callback, ended);
        ended.map_err(|trouble| (CloseReason::Refused, trouble))
    }

    /// Only an open's error reaches a caller; the others go to the observers and the strategy.
    fn told(
        &self,
        id: u64,
        callback: Callback,
        ended: Result<Option<Trouble>, Mishap>,
    ) -> Result<(), Trouble> {
        let trouble = match ended {
            Ok(None) => return Ok(()),
            Ok(Some(trouble)) => trouble,
            Err(mishap) => Trouble {
                class: match mishap {
                    Mishap::Overdue(_) => ErrorClass::TimedOut,
                    Mishap::Panicked(_) => ErrorClass::Panicked,
                },
                ..Trouble::of(mishap.to_string())
            },
        };
        // The text is user code, too.
        let text = || trouble.error.as_ref().map(ToString::to_string);
        let message = guarded_now(text).unwrap_or_else(|mishap| Some(mishap.to_string()));
        let observers = &self.shared.observers;
        observers.callback_failed(id, callback, &message.unwrap_or_default());
        Err(trouble)
    }

    /// The error of a callback, if it returned one, and its class.
    fn trouble(&self, result: Result<(), ErrorOf<K>>) -> Option<Trouble> {
        let error = result.err()?;
        let class = self.classify(&error);
        let error = Some(error.into());
        Some(Trouble { class, error })
    }

    fn classify(&self, error: &ErrorOf<K>) -> ErrorClass {
        let class = guarded_now(|| self.shared.manager.classify(error));
        class.unwrap_or_default()
    }

    /// Returns whether it has proven that the backend is back.
    fn judged(&mut self, pooled: Box<Pooled<K>>, outcome: Outcome) -> bool {
        let slot = self.slot;
        self.report(|ledger, now, orders| ledger.judged(slot, pooled, outcome, now, orders))
    }

    /// Reports the end of the work to the ledger.
    fn report<T>(
        &mut self,
        call: impl FnOnce(&mut PoolLedger<K>, Moment, &mut PoolOrders<K>) -> T,
    ) -> T {
        self.done = true;
        self.shared.order(Place::Task, call)
    }
}

/// Whether a resource is fit; if not, why it is closed, and what went wrong.
type Vetted = Result<(), (CloseReason, Trouble)>;

/// What went wrong in a callback.
#[derive(Default)]
struct Trouble {
    class: ErrorClass,
    error: Option<Box<dyn Error + Send + Sync>>,
}

impl Trouble {
    fn of(text: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            error: Some(text.into()),
            ..Self::default()
        }
    }

    fn failed(&self, kind: Failure) -> Failed<'_> {
        Failed {
            class: self.class,
            error: self.error.as_deref().map(|error| error as _),
            ..Failed::new(kind)
        }
    }
}
