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
use crate::loan::Loan;
use crate::manager::Manager;
use crate::observer::{Callback, CallbackFailed, Closed, OpenFailed, Opened, Opening};
use crate::rt::{self, Home};
use crate::shared::{Evidence, Place, Shared};
use crate::status::Reason;

/// The future that does this piece of work. Whoever drops it before it is done gives the slot back.
pub(crate) fn run<M: Manager + 'static>(
    shared: &Arc<Shared<M>>,
    work: Work<Box<Loan<M>>>,
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
            let orders = self.shared.lock().lost(self.slot, rt::now());
            self.shared.carry_out(orders, Place::Drop);
        }
    }
}

impl<M: Manager + 'static> Duty<M> {
    async fn open(mut self) {
        let shared = Arc::clone(&self.shared);
        loop {
            let (wanted, orders) = shared.lock().may_open(self.slot, rt::now());
            self.done = !wanted;
            shared.carry_out(orders, Place::Task);
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
                    let loan = Loan::new(resource);
                    let (id, orders) = shared.lock().opened(self.slot, loan, home, now);
                    self.done = true;
                    shared.observers.tell(|observer| {
                        observer.opened(&Opened {
                            pool: &shared.name,
                            id,
                            took,
                        })
                    });
                    return shared.carry_out(orders, Place::Task);
                }
                Ok(Err(error)) => OpenError::Failed(Arc::new(error)),
                Err(Mishap::Overdue(limit)) => OpenError::TimedOut(limit),
                Err(Mishap::Panicked(message)) => OpenError::Panicked(message),
            };
            shared.observers.tell(|observer| {
                observer.open_failed(&OpenFailed {
                    pool: &shared.name,
                    took,
                    error: &error,
                });
            });
            let (after, orders) = shared.lock().open_failed(self.slot, error, now);
            self.done = after == AfterFailure::GiveUp;
            shared.report(Evidence::Failed(Failure::Open), Place::Task);
            shared.carry_out(orders, Place::Task);
            match after {
                AfterFailure::GiveUp => return,
                AfterFailure::Retry(delay) => self.pause(delay).await,
            }
        }
    }

    /// The back-off between two tries. It ends when another try has succeeded, or the pool closes.
    async fn pause(&self, delay: Duration) {
        let mut timer = pin!(rt::sleep_until(rt::now().checked_add(delay)));
        poll_fn(|context| {
            let is_over = {
                let mut book = self.shared.lock_as_is();
                book.watch(context.waker());
                book.is_closed() || !book.is_failing()
            };
            if is_over {
                Poll::Ready(())
            } else {
                timer.as_mut().poll(context)
            }
        })
        .await;
    }

    async fn vet(mut self, id: u64, mut loan: Box<Loan<M>>, check: bool, ask: bool) {
        let mut outcome = if ask { Outcome::Fit } else { Outcome::Alive };
        if check && !self.check(id, &mut loan.resource).await {
            outcome = Outcome::Unfit(Reason::FailedCheck);
        } else if ask
            && !self
                .ask(id, &mut loan.resource, Callback::BeforeAcquire)
                .await
        {
            outcome = Outcome::Unfit(Reason::Refused);
        }
        self.judged(loan, outcome);
        if let Outcome::Unfit(_) = outcome {
            self.shared
                .report(Evidence::Failed(Failure::Check), Place::Task);
        }
    }

    async fn clean(mut self, id: u64, mut loan: Box<Loan<M>>, clean: bool, probe: bool) {
        let shared = Arc::clone(&self.shared);
        let mut outcome = Outcome::Fit;
        if clean {
            let cleaning = async { shared.manager.clean(&mut loan.resource).await };
            let ended = guarded(Some(shared.limits.clean_timeout), cleaning).await;
            if !self.went_well(id, Callback::Clean, ended) {
                outcome = Outcome::Unfit(Reason::FailedClean);
            }
        }
        if outcome == Outcome::Fit
            && shared.limits.check_on_return
            && !self.check(id, &mut loan.resource).await
        {
            outcome = Outcome::Unfit(Reason::FailedCheck);
        }
        if outcome == Outcome::Fit
            && !self
                .ask(id, &mut loan.resource, Callback::BeforeRelease)
                .await
        {
            outcome = Outcome::Unfit(Reason::Refused);
        }
        self.judged(loan, outcome);
        let evidence = match outcome {
            Outcome::Fit | Outcome::Alive => Evidence::Accepted { probe },
            Outcome::Unfit(_) => Evidence::Failed(Failure::Return),
        };
        shared.report(evidence, Place::Task);
    }

    async fn close(mut self, id: u64, loan: Box<Loan<M>>, reason: Reason) {
        let shared = Arc::clone(&self.shared);
        let closing = async { shared.manager.close(loan.resource).await };
        let ended = guarded(Some(shared.limits.close_timeout), closing).await;
        let orders = shared.lock().closed(self.slot, rt::now());
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

    fn judged(&mut self, loan: Box<Loan<M>>, outcome: Outcome) {
        let orders = self
            .shared
            .lock()
            .judged(self.slot, loan, outcome, rt::now());
        self.fulfil(orders);
    }

    fn fulfil(&mut self, orders: Orders<Box<Loan<M>>>) {
        self.done = true;
        self.shared.carry_out(orders, Place::Task);
    }
}
