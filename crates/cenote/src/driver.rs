//! The driver: does the owed work, each piece in a task of the pool. The only place that awaits a manager.

use std::fmt::Display;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::breaker::Failure;
use crate::error::OpenError;
use crate::guarded::{Mishap, guarded, guarded_now};
use crate::ledger::{AfterFailure, Orders, Outcome, SlotNo, Work};
use crate::manager::Manager;
use crate::observer::{Callback, CallbackFailed, Closed, OpenFailed, Opened, Opening};
use crate::pooled::Pooled;
use crate::rt::{self, Home};
use crate::shared::{Place, Shared, wake_all};
use crate::status::Reason;
use crate::strategy::Evidence;
use crate::watcher::Watcher;

/// The future that does this piece of work. Dropped before it is done, it gives the slot back.
pub(crate) fn run<M: Manager + 'static>(
    shared: &Arc<Shared<M>>,
    work: Work<Box<Pooled<M>>>,
) -> impl Future<Output = ()> + Send + 'static {
    let slot = match work {
        Work::Open { slot }
        | Work::Vet { slot, .. }
        | Work::Clean { slot, .. }
        | Work::Close { slot, .. } => slot,
    };
    // Made here and not inside: a future may be dropped before it was ever polled.
    let duty = Duty {
        shared: Arc::clone(shared),
        slot,
        done: false,
    };
    async move {
        match work {
            Work::Open { .. } => duty.open().await,
            Work::Vet {
                id,
                resource,
                check,
                ask,
                ..
            } => duty.vet(id, resource, check, ask).await,
            Work::Clean {
                id,
                resource,
                clean,
                probe,
                ..
            } => duty.clean(id, resource, clean, probe).await,
            Work::Close {
                id,
                resource,
                reason,
                ..
            } => duty.close(id, resource, reason).await,
        }
    }
}

/// The duty to report on a slot. Dropped unfulfilled, it reports that the slot's resource is lost.
struct Duty<M: Manager + 'static> {
    shared: Arc<Shared<M>>,
    slot: SlotNo,
    done: bool,
}

impl<M: Manager + 'static> Drop for Duty<M> {
    fn drop(&mut self) {
        if !self.done {
            let mut orders = self.shared.ledger_off_trays().lost(self.slot, rt::now());
            self.shared.carry_out(&mut orders, Place::Drop);
        }
    }
}

impl<M: Manager + 'static> Duty<M> {
    async fn open(mut self) {
        let shared = Arc::clone(&self.shared);
        loop {
            let (wanted, mut orders) = shared.ledger_off_trays().may_open(self.slot, rt::now());
            self.done = !wanted;
            shared.carry_out(&mut orders, Place::Task);
            if !wanted {
                return;
            }
            let started = rt::now();
            shared
                .observers
                .tell(|observer| observer.opening(&Opening { pool: &shared.name }));
            let ended = guarded(shared.limits.open_timeout, async {
                shared.manager.open().await
            })
            .await;
            let now = rt::now();
            let took = now.saturating_duration_since(started);
            let error = match ended {
                Ok(Ok(resource)) => {
                    let home = Some(Home::here());
                    let pooled = Pooled::new(resource);
                    let (id, mut orders) = shared
                        .ledger_off_trays()
                        .opened(self.slot, pooled, home, now);
                    self.done = true;
                    shared.carry_out(&mut orders, Place::Task);
                    shared.observers.tell(|observer| {
                        observer.opened(&Opened {
                            pool: &shared.name,
                            id,
                            took,
                        })
                    });
                    return;
                }
                Ok(Err(error)) => OpenError::Failed(Arc::new(error)),
                Err(Mishap::Overdue(limit)) => OpenError::TimedOut(limit),
                Err(Mishap::Panicked(message)) => OpenError::Panicked(message),
            };
            let (after, mut orders) =
                shared
                    .ledger_off_trays()
                    .open_failed(self.slot, error.clone(), now);
            self.done = after == AfterFailure::GiveUp;
            // The waiter that hears of it is woken first. The strategy is asked before another open is begun.
            wake_all(&mut orders);
            shared.report(Evidence::Failed(Failure::Open), Place::Task);
            shared.carry_out(&mut orders, Place::Task);
            shared.observers.tell(|observer| {
                observer.open_failed(&OpenFailed {
                    pool: &shared.name,
                    took,
                    error: &error,
                });
            });
            match after {
                AfterFailure::GiveUp => return,
                AfterFailure::Retry(delay) => self.pause(delay).await,
            }
        }
    }

    /// The back-off between two tries. It ends when another try has succeeded, or the pool closes.
    async fn pause(&self, delay: Duration) {
        let mut timer = pin!(rt::sleep_until(rt::now().checked_add(delay)));
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

    async fn vet(mut self, id: u64, mut pooled: Box<Pooled<M>>, check: bool, ask: bool) {
        let mut outcome = if ask { Outcome::Fit } else { Outcome::Alive };
        if self.is_broken(id, &mut pooled.resource) {
            outcome = Outcome::Unfit(Reason::Broken);
        } else if check && !self.check(id, &mut pooled.resource).await {
            outcome = Outcome::Unfit(Reason::FailedCheck);
        } else if ask
            && !self
                .ask(id, &mut pooled.resource, Callback::BeforeAcquire)
                .await
        {
            outcome = Outcome::Unfit(Reason::Refused);
        }
        self.judged(pooled, outcome);
        if let Outcome::Unfit(_) = outcome {
            self.shared
                .report(Evidence::Failed(Failure::Check), Place::Task);
        }
    }

    async fn clean(mut self, id: u64, mut pooled: Box<Pooled<M>>, clean: bool, probe: bool) {
        let shared = Arc::clone(&self.shared);
        let mut outcome = Outcome::Fit;
        if clean {
            let cleaning = async { shared.manager.clean(&mut pooled.resource).await };
            let ended = guarded(Some(shared.limits.clean_timeout), cleaning).await;
            if !self.went_well(id, Callback::Clean, ended) {
                outcome = Outcome::Unfit(Reason::FailedClean);
            }
        }
        if outcome == Outcome::Fit
            && shared.limits.check_on_return
            && !self.check(id, &mut pooled.resource).await
        {
            outcome = Outcome::Unfit(Reason::FailedCheck);
        }
        if outcome == Outcome::Fit
            && !self
                .ask(id, &mut pooled.resource, Callback::BeforeRelease)
                .await
        {
            outcome = Outcome::Unfit(Reason::Refused);
        }
        self.judged(pooled, outcome);
        let evidence = match outcome {
            Outcome::Fit | Outcome::Alive => Evidence::Accepted { probe },
            Outcome::Unfit(_) => Evidence::Failed(Failure::Return),
        };
        shared.report(evidence, Place::Task);
    }

    async fn close(mut self, id: u64, pooled: Box<Pooled<M>>, reason: Reason) {
        let shared = Arc::clone(&self.shared);
        let closing = async { shared.manager.close(pooled.resource).await };
        let ended = guarded(Some(shared.limits.close_timeout), closing).await;
        let orders = shared.ledger_off_trays().closed(self.slot, rt::now());
        self.fulfil(orders);
        self.went_well(
            id,
            Callback::Close,
            ended.map(Ok::<_, std::convert::Infallible>),
        );
        shared.observers.tell(|observer| {
            observer.closed(&Closed {
                pool: &shared.name,
                id,
                reason,
            })
        });
    }

    fn is_broken(&self, id: u64, resource: &mut M::Resource) -> bool {
        let seen = guarded_now(|| self.shared.manager.is_broken(resource));
        seen.unwrap_or_else(|mishap| {
            self.went_well(id, Callback::Inspect, Err::<Result<(), &str>, _>(mishap));
            true
        })
    }

    async fn check(&self, id: u64, resource: &mut M::Resource) -> bool {
        let checking = async { self.shared.manager.check(resource).await };
        let ended = guarded(Some(self.shared.limits.check_timeout), checking).await;
        self.went_well(id, Callback::Check, ended)
    }

    /// Asks a hook, if there is one.
    async fn ask(&self, id: u64, resource: &mut M::Resource, callback: Callback) -> bool {
        let Shared { hooks, limits, .. } = &*self.shared;
        let (hook, limit) = match callback {
            Callback::BeforeAcquire => (&hooks.before_acquire, limits.check_timeout),
            _ => (&hooks.before_release, limits.clean_timeout),
        };
        let Some(hook) = hook else { return true };
        let ended = guarded(Some(limit), async { hook(resource).await }).await;
        self.went_well(
            id,
            callback,
            ended.map(|yes| if yes { Ok(()) } else { Err("said no") }),
        )
    }

    /// Only an open's error reaches a caller; the others go to the observers.
    fn went_well<E: Display>(
        &self,
        id: u64,
        callback: Callback,
        ended: Result<Result<(), E>, Mishap>,
    ) -> bool {
        let message = match ended {
            Ok(Ok(())) => return true,
            // The text is the user's too.
            Ok(Err(error)) => {
                guarded_now(|| error.to_string()).unwrap_or_else(|mishap| mishap.to_string())
            }
            Err(mishap) => mishap.to_string(),
        };
        let pool = &*self.shared.name;
        let event = CallbackFailed {
            pool,
            id,
            callback,
            message: &message,
        };
        self.shared
            .observers
            .tell(|observer| observer.callback_failed(&event));
        false
    }

    fn judged(&mut self, pooled: Box<Pooled<M>>, outcome: Outcome) {
        let orders = self
            .shared
            .ledger_off_trays()
            .judged(self.slot, pooled, outcome, rt::now());
        self.fulfil(orders);
    }

    fn fulfil(&mut self, mut orders: Orders<Box<Pooled<M>>>) {
        self.done = true;
        self.shared.carry_out(&mut orders, Place::Task);
    }
}
