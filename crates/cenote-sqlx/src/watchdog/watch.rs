//! The watch of one session: whether it waits for its server, and what the watchdog found out.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use sqlx::Error;

use super::{Place, Watchdog, lock};
use crate::dialect::Dialect;
use crate::error::lost;

pub(crate) struct Watch<DB: Dialect> {
    pub(super) place: Place,
    dog: Arc<Watchdog<DB>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of the last wait.
    wait: u64,
    waiting: bool,
    /// The task that waits. The watchdog takes it to wake it.
    task: Option<Waker>,
    /// How many ticks of the watchdog the wait has seen since its begin, or since the last look.
    ticks: u32,
    suspicion: Suspicion,
    /// Why the statement fails.
    verdict: Option<String>,
}

impl State {
    /// The quiet must last as long as a look is worth.
    fn be_quiet(&mut self) {
        self.suspicion = Suspicion::Quiet;
        self.ticks = 0;
    }
}

/// What is known about a session after a look that found something wrong.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Suspicion {
    #[default]
    None,
    /// The wake-ups of the driver must be noticed.
    Asked,
    /// They are noticed, and there was none so far.
    Quiet,
    /// There was none for as long as a look is worth, and the next look has begun.
    Proven,
    /// The driver was woken: something arrived.
    Stirred,
}

/// What a tick of the watchdog found.
pub(super) enum Tick {
    Free,
    Waits,
    /// The wait with this number is as long as a look is worth.
    Silent(u64),
}

/// Runs `work` under the watch. The error is that of the watchdog.
///
/// # Cancel safety
/// Dropping this future ends the watch. `work` is left to its owner.
pub(crate) async fn over<DB: Dialect, F: Future>(
    watch: Option<&Arc<Watch<DB>>>,
    mut work: Pin<&mut F>,
) -> Result<F::Output, Error> {
    let Some(watch) = watch else {
        return Ok(work.await);
    };
    let mut wait = Wait {
        watch,
        begun: false,
        probe: None,
    };
    poll_fn(move |context| {
        let polled = match &wait.probe {
            Some(probe) => {
                // The probe wakes the task that is noted here.
                watch.note(context.waker());
                work.as_mut().poll(&mut Context::from_waker(probe))
            }
            None => work.as_mut().poll(context),
        };
        if let Poll::Ready(value) = polled {
            return Poll::Ready(Ok(value));
        }
        if !wait.begun {
            wait.begun = true;
            watch.begin(context.waker());
            return Poll::Pending;
        }
        watch.note(context.waker());
        match watch.next() {
            Next::Wait => Poll::Pending,
            Next::Fail(why) => Poll::Ready(Err(lost(&why))),
            Next::Probe => {
                let probe = wait.probe.insert(Waker::from(Arc::clone(watch)));
                let polled = work.as_mut().poll(&mut Context::from_waker(probe));
                polled.map(Ok)
            }
        }
    })
    .await
}

/// A wait under watch. Its drop ends the wait.
struct Wait<'a, DB: Dialect> {
    watch: &'a Arc<Watch<DB>>,
    begun: bool,
    /// The waker of the driver, while its wake-ups must be noticed.
    probe: Option<Waker>,
}

impl<DB: Dialect> Drop for Wait<'_, DB> {
    fn drop(&mut self) {
        if self.begun {
            self.watch.end();
        }
    }
}

enum Next {
    Wait,
    Fail(String),
    Probe,
}

impl<DB: Dialect> Watch<DB> {
    pub(super) fn new(place: Place, dog: Arc<Watchdog<DB>>) -> Self {
        Self {
            place,
            dog,
            state: Mutex::default(),
        }
    }

    fn begin(&self, task: &Waker) {
        let task = Some(task.clone());
        let mut state = lock(&self.state);
        state.wait += 1;
        state.waiting = true;
        state.ticks = 0;
        let before = std::mem::replace(&mut state.task, task);
        drop(state);
        drop(before);
        self.dog.wake_up();
    }

    fn end(&self) {
        let mut state = lock(&self.state);
        let wait = state.wait;
        let before = std::mem::take(&mut *state);
        state.wait = wait;
        drop(state);
        drop(before);
    }

    /// Notes which task waits now.
    fn note(&self, task: &Waker) {
        let is_known = |state: &State| state.task.as_ref().is_some_and(|old| old.will_wake(task));
        if is_known(&lock(&self.state)) {
            return;
        }
        let task = task.clone();
        let before = lock(&self.state).task.replace(task);
        drop(before);
    }

    fn next(&self) -> Next {
        let mut state = lock(&self.state);
        if let Some(why) = state.verdict.take() {
            return Next::Fail(why);
        }
        if state.suspicion != Suspicion::Asked {
            return Next::Wait;
        }
        state.be_quiet();
        Next::Probe
    }

    pub(super) fn is_waiting(&self) -> bool {
        lock(&self.state).waiting
    }

    pub(super) fn tick(&self, enough: u32) -> Tick {
        let mut state = lock(&self.state);
        if !state.waiting {
            return Tick::Free;
        }
        state.ticks += 1;
        // The first tick may have come right after the begin.
        if state.ticks <= enough {
            return Tick::Waits;
        }
        state.ticks = 1;
        if state.suspicion == Suspicion::Quiet {
            state.suspicion = Suspicion::Proven;
        }
        Tick::Silent(state.wait)
    }

    /// The server runs the statement, or cannot be asked.
    pub(super) fn is_fine(&self, wait: u64) {
        self.judge(wait, |state| {
            // The probe of the driver stays. It notices wake-ups if they are asked for again.
            state.suspicion = match state.suspicion {
                Suspicion::None | Suspicion::Asked => Suspicion::None,
                Suspicion::Quiet | Suspicion::Proven | Suspicion::Stirred => Suspicion::Stirred,
            };
            None
        });
    }

    pub(super) fn fail(&self, wait: u64, why: String) {
        self.judge(wait, |state| {
            state.verdict = Some(why);
            state.task.take()
        });
    }

    /// Something is wrong: nothing answers, or the server has nothing to do for the session. If the
    /// look before found that too, and nothing has arrived since, the statement fails.
    pub(super) fn suspect(&self, wait: u64, why: impl FnOnce() -> String) {
        self.judge(wait, |state| match state.suspicion {
            // A task that is not polled may have its answer.
            Suspicion::None | Suspicion::Asked => {
                state.suspicion = Suspicion::Asked;
                state.task.take()
            }
            Suspicion::Stirred => {
                state.be_quiet();
                None
            }
            Suspicion::Quiet => None,
            Suspicion::Proven => {
                state.verdict = Some(why());
                state.task.take()
            }
        });
    }

    /// Changes the state of this wait, if it is not over, and wakes the task that `change` returns.
    fn judge(&self, wait: u64, change: impl FnOnce(&mut State) -> Option<Waker>) {
        let mut state = lock(&self.state);
        let task = match state.waiting && state.wait == wait {
            true => change(&mut state),
            false => None,
        };
        drop(state);
        if let Some(task) = task {
            task.wake();
        }
    }
}

/// The waker of a driver whose wake-ups must be noticed.
impl<DB: Dialect> Wake for Watch<DB> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        if matches!(state.suspicion, Suspicion::Quiet | Suspicion::Proven) {
            state.suspicion = Suspicion::Stirred;
        }
        let task = state.task.take();
        drop(state);
        if let Some(task) = task {
            task.wake();
        }
    }
}
