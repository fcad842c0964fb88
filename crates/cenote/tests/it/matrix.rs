//! Every await of an acquire, crossed with every way in which every callback can fail and with the
//! caller dropped there: no slot is lost. The tables here serve `matrix_return`, `matrix_upkeep`
//! and `matrix_close` too.

use std::future::Future;
use std::time::Duration;

use cenote::{AcquireError, Builder, Lease};
use cenote_testkit::{Call, Fault, Gate, GatedManager, GatedPool, Rig, cut};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::support::hooks::{before_acquire, before_release};
use crate::support::rigs::hold;
use crate::support::status_rules::checked_status;
use crate::support::text::panic_message;

pub(crate) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// Timers are exact to a millisecond.
pub(crate) const IN_TIME: Duration = ACQUIRE_TIMEOUT.saturating_add(Duration::from_millis(2));

/// Longer than all time limits of one resource after another.
pub(crate) const LONG: Duration = Duration::from_secs(60);

const SLOW: Duration = Duration::from_millis(100);

const GATES: [Gate; 5] = [
    Gate::Pass,
    Gate::Fail,
    Gate::Slow(SLOW),
    Gate::Hang,
    Gate::Panic,
];

/// Where the caller's future is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Polls(usize),
    After(Duration),
    Never,
}

impl Cut {
    /// After each of the first polls, in the middle of a slow call, after a held-up open was
    /// doubled by another, after the time limit of a check, and never.
    fn all() -> impl Iterator<Item = Self> {
        let delays = [1, 50, 1_500, 2_500];
        (0..=6)
            .map(Self::Polls)
            .chain(delays.map(|delay| Self::After(Duration::from_millis(delay))))
            .chain([Self::Never])
    }

    pub(crate) async fn apply<T>(self, future: impl Future<Output = T>) -> Option<T> {
        match self {
            Self::Polls(polls) => cut(polls, future).await,
            Self::After(delay) => timeout(delay, future).await.ok(),
            Self::Never => Some(future.await),
        }
    }
}

/// One cell of the matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) call: Call,
    pub(crate) gate: Gate,
    /// The call fails once, or until the backend is healed.
    pub(crate) once: bool,
    pub(crate) max_size: usize,
    /// Whether other callers compete for the resources.
    pub(crate) crowd: bool,
    pub(crate) cut: Cut,
}

impl Case {
    fn all() -> impl Iterator<Item = Self> {
        let mut cases = Vec::new();
        for call in Call::ALL {
            for gate in GATES {
                for once in [true, false] {
                    if once && gate == Gate::Pass {
                        continue;
                    }
                    for max_size in [1, 3] {
                        for crowd in [false, true] {
                            cases.extend(Cut::all().map(|cut| Self {
                                call,
                                gate,
                                once,
                                max_size,
                                crowd,
                                cut,
                            }));
                        }
                    }
                }
            }
        }
        cases.into_iter()
    }

    /// A rig that makes the call of this case at all.
    pub(crate) fn rig(
        self,
        build: impl FnOnce(Builder<GatedManager>) -> Builder<GatedManager>,
    ) -> Rig {
        Rig::new(|pool| {
            let pool = pool
                .max_size(self.max_size)
                .acquire_timeout(ACQUIRE_TIMEOUT)
                .check_on_return(self.call == Call::Check);
            let pool = match self.call {
                Call::BeforeAcquire => pool.before_acquire(before_acquire),
                Call::BeforeRelease => pool.before_release(before_release),
                _ => pool,
            };
            build(pool)
        })
    }

    /// Makes the call fail from now on.
    pub(crate) fn arm(self, rig: &Rig) {
        if self.once {
            rig.backend.once(self.call, self.gate);
        } else {
            rig.backend.always(self.call, self.gate);
        }
    }

    /// Returns whether the call ends badly.
    pub(crate) fn is_bad(self) -> bool {
        matches!(self.gate, Gate::Fail | Gate::Hang | Gate::Panic)
    }
}

/// Plays `scenario` for every case, and names the case that fails.
pub(crate) async fn for_every_case<A>(scenario: impl Fn(Case) -> A)
where
    A: Future<Output = ()> + Send + 'static,
{
    for case in Case::all() {
        let played = timeout(LONG * 60, tokio::spawn(scenario(case))).await;
        match played {
            Ok(Ok(())) => {}
            Ok(Err(error)) => panic!("{case:?}: {}", panic_message(&*error.into_panic())),
            Err(_) => panic!("{case:?}: it never ends"),
        }
    }
}

/// Another caller that wants a resource, uses it shortly, and must get an answer in time.
pub(crate) fn competitor(pool: &GatedPool) -> JoinHandle<()> {
    let pool = pool.clone();
    tokio::spawn(async move {
        let served = timeout(IN_TIME, pool.acquire()).await;
        if let Ok(lease) = served.expect("nothing was heard in time") {
            assert_fit(&lease);
            sleep(Duration::from_millis(1)).await;
        }
    })
}

pub(crate) fn assert_fit(lease: &Lease<GatedManager>) {
    assert!(
        !lease.dirty && !lease.broken,
        "lent although unfit: {:?}",
        **lease
    );
}

/// Asserts that every competitor got an answer.
pub(crate) async fn assert_told(crowd: Vec<JoinHandle<()>>) {
    for one in crowd {
        let told = timeout(LONG, one).await.expect("a caller waits for ever");
        if let Err(error) = told {
            panic!("{}", panic_message(&*error.into_panic()));
        }
    }
}

/// Lets everything happen that can happen now. Far cheaper than `settle`, which matters for
/// thousands of cases.
pub(crate) async fn breathe() {
    sleep(Duration::from_millis(1)).await;
}

/// Makes `max_size` resources idle.
pub(crate) async fn fill(rig: &Rig) {
    drop(hold(rig, rig.pool.status().max_size).await);
    breathe().await;
    assert_eq!(rig.pool.status().idle, rig.pool.status().max_size);
}

/// Asserts at the end of a scenario that nothing was lost, and that every lease was returned.
pub(crate) async fn assert_nothing_lost(rig: &Rig) {
    checked_status(&rig.pool);
    rig.backend.heal();
    // An open that hung before still fails now, and its error goes to the first waiter then.
    sleep(Duration::from_secs(11)).await;
    rig.assert_full_service().await;
    checked_status(&rig.pool);
    let status = rig.pool.status();
    assert_eq!(
        (status.acquired, status.in_use),
        (status.released, 0),
        "{status:#?}"
    );
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shelf {
    Empty,
    Idle,
    Stale,
}

async fn acquire_from(shelf: Shelf, case: Case) {
    let rig = case.rig(|pool| pool);
    if shelf != Shelf::Empty {
        fill(&rig).await;
    }
    if shelf == Shelf::Stale {
        sleep(Duration::from_secs(6)).await;
    }
    case.arm(&rig);
    let mut crowd = Vec::new();
    if case.crowd {
        // One competitor comes before us, one after.
        crowd.push(competitor(&rig.pool));
        breathe().await;
        crowd.push(competitor(&rig.pool));
    }

    let served = timeout(IN_TIME, case.cut.apply(rig.pool.acquire())).await;

    let served = served.expect("nothing was heard in time");
    checked_status(&rig.pool);
    if case.cut == Cut::Never && !case.crowd {
        let told = served.as_ref().expect("it was not cut");
        assert_answer(shelf, case, told);
    }
    drop(served);
    assert_told(crowd).await;
    assert_nothing_lost(&rig).await;
}

/// Asserts that only a failed open reaches the caller, and with the right error.
fn assert_answer(
    shelf: Shelf,
    case: Case,
    told: &Result<Lease<GatedManager>, AcquireError<Fault>>,
) {
    // One hung open does not hold up a caller where there is room for another.
    let evaded = case.gate == Gate::Hang && case.once && case.max_size > 1;
    let needs_open = shelf == Shelf::Empty && case.call == Call::Open && !evaded;
    match told {
        Ok(lease) => {
            assert!(!needs_open || !case.is_bad(), "lent what was never opened");
            assert_fit(lease);
        }
        Err(AcquireError::Open { .. }) => {
            assert!(needs_open && matches!(case.gate, Gate::Fail | Gate::Panic));
        }
        Err(AcquireError::TimedOut(_)) => assert!(needs_open && case.gate == Gate::Hang),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_acquire_from_an_empty_pool_loses_nothing_whatever_fails_and_wherever_it_is_dropped() {
    for_every_case(|case| acquire_from(Shelf::Empty, case)).await;
}

#[tokio::test(start_paused = true)]
async fn an_acquire_of_an_idle_resource_loses_nothing_whatever_fails_and_wherever_it_is_dropped() {
    for_every_case(|case| acquire_from(Shelf::Idle, case)).await;
}

#[tokio::test(start_paused = true)]
async fn an_acquire_of_a_stale_resource_loses_nothing_whatever_fails_and_wherever_it_is_dropped() {
    for_every_case(|case| acquire_from(Shelf::Stale, case)).await;
}

#[tokio::test(start_paused = true)]
async fn an_acquire_cut_after_a_while_leaves_its_open_to_the_next_caller() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Open, Gate::Slow(SLOW));

    let served = Cut::After(SLOW / 2).apply(rig.pool.acquire()).await;
    let next = rig.acquire().await;

    assert!(served.is_none());
    assert_eq!((next.serial, rig.backend.calls(Call::Open)), (1, 1));
}
