//! Every await of an acquire, crossed with every way in which every callback can go wrong and with the caller dropped there: no slot is
//! lost. The tables here serve `matrix_return`, `matrix_upkeep` and `matrix_close` too.

use std::any::Any;
use std::future::Future;
use std::time::Duration;

use cenote::{AcquireError, Builder, Lease};
use cenote_testkit::{Call, Fault, Gate, GatedManager, GatedPool, Rig, Thing, cut};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::books::{assert_accounted, sample};

pub(crate) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// Timers are a millisecond coarse.
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
    /// Each poll of the first few, in the middle of something slow, after what is held up was doubled, after a check's time limit, never.
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
    /// It goes wrong once, or until the backend is healed.
    pub(crate) once: bool,
    pub(crate) max_size: usize,
    /// Others who want a resource as well.
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

    /// A rig in which the call of this case is made at all.
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
                Call::BeforeAcquire => pool.before_acquire(async |thing: &mut Thing| {
                    thing.pass(Call::BeforeAcquire).await
                }),
                Call::BeforeRelease => pool.before_release(async |thing: &mut Thing| {
                    thing.pass(Call::BeforeRelease).await
                }),
                _ => pool,
            };
            build(pool)
        })
    }

    /// From now on it goes wrong.
    pub(crate) fn arm(self, rig: &Rig) {
        if self.once {
            rig.backend.once(self.call, self.gate);
        } else {
            rig.backend.always(self.call, self.gate);
        }
    }

    /// Does the call end badly?
    pub(crate) fn is_bad(self) -> bool {
        matches!(self.gate, Gate::Fail | Gate::Hang | Gate::Panic)
    }
}

/// Plays `scenario` for every case, and names the one that fails.
pub(crate) async fn for_every_case<A>(scenario: impl Fn(Case) -> A)
where
    A: Future<Output = ()> + Send + 'static,
{
    for case in Case::all() {
        let played = timeout(LONG * 60, tokio::spawn(scenario(case))).await;
        match played {
            Ok(Ok(())) => {}
            Ok(Err(error)) => panic!("{case:?}: {}", message(&*error.into_panic())),
            Err(_) => panic!("{case:?}: it never ends"),
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}

/// Somebody else who wants a resource, uses it shortly, and must be told something in time.
pub(crate) fn somebody(pool: &GatedPool) -> JoinHandle<()> {
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

/// Everybody in the crowd was told something.
pub(crate) async fn assert_told(crowd: Vec<JoinHandle<()>>) {
    for one in crowd {
        let told = timeout(LONG, one).await.expect("somebody waits for ever");
        if let Err(error) = told {
            panic!("{}", message(&*error.into_panic()));
        }
    }
}

/// Lets everything happen that can happen now. Far cheaper than `settle`, which matters for thousands of cases.
pub(crate) async fn breathe() {
    sleep(Duration::from_millis(1)).await;
}

/// Makes `max_size` resources idle.
pub(crate) async fn fill(rig: &Rig) {
    let mut leases = Vec::new();
    for _ in 0..rig.pool.status().max_size {
        leases.push(rig.acquire().await);
    }
    drop(leases);
    breathe().await;
    assert_eq!(rig.pool.status().idle, rig.pool.status().max_size);
}

/// What the sums of a status promise, whatever happened.
pub(crate) fn assert_sums(rig: &Rig) {
    assert_accounted(&sample(&rig.pool));
}

/// The end of a scenario: nothing was lost, and what went out came back.
pub(crate) async fn assert_nothing_lost(rig: &Rig) {
    assert_sums(rig);
    rig.backend.heal();
    // An open that hangs since before still fails, and tells whoever is first then.
    sleep(Duration::from_secs(11)).await;
    rig.assert_full_service().await;
    assert_sums(rig);
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
        // One comes before us, one after.
        crowd.push(somebody(&rig.pool));
        breathe().await;
        crowd.push(somebody(&rig.pool));
    }

    let served = timeout(IN_TIME, case.cut.apply(rig.pool.acquire())).await;

    let served = served.expect("nothing was heard in time");
    assert_sums(&rig);
    if case.cut == Cut::Never && !case.crowd {
        let told = served.as_ref().expect("it was not cut");
        assert_answer(shelf, case, told);
    }
    drop(served);
    assert_told(crowd).await;
    assert_nothing_lost(&rig).await;
}

/// Only an open that went wrong reaches the caller, and only as what it is.
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
async fn an_acquire_of_what_is_idle_loses_nothing_whatever_fails_and_wherever_it_is_dropped() {
    for_every_case(|case| acquire_from(Shelf::Idle, case)).await;
}

#[tokio::test(start_paused = true)]
async fn an_acquire_of_what_is_stale_loses_nothing_whatever_fails_and_wherever_it_is_dropped() {
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
