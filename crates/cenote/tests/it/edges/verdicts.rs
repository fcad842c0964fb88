//! Verdicts and texts are true.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cenote::config::OnOpenError;
use cenote::event::NestedAcquire;
use cenote::{AcquireError, Health, LeaseEnd, Manager, Observer, Pool};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig};

use crate::support::runtimes::with_workers;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// The defaults: each waiter times out after 5 s, and 5 s of silence make a pool stuck.
#[tokio::test(start_paused = true)]
async fn a_pool_that_serves_no_caller_is_stuck_with_the_defaults() {
    let rig = Rig::with_max_size(1);
    let _leaked = rig.acquire().await;
    let mut stuck_after = None;

    for nth in 0..130_u32 {
        let pool = rig.pool.clone();
        tokio::spawn(async move { pool.acquire().await.map(drop) });
        advance(100 * MS).await;
        match rig.pool.health() {
            Health::Stuck { .. } if stuck_after.is_none() => stuck_after = Some(nth),
            Health::Stuck { .. } => {}
            other => assert!(stuck_after.is_none(), "stuck, and then {other}"),
        }
    }

    let stuck_after = stuck_after.expect("it serves no caller") * 100 * MS;
    assert!(stuck_after <= 5_200 * MS, "{stuck_after:?}");
    assert!(rig.pool.status().timed_out > 50);
}

/// Callers that come one after the other, each with a timeout of its own around the acquire.
#[tokio::test(start_paused = true)]
async fn callers_that_give_up_one_after_the_other_do_not_hide_a_stuck_pool() {
    let rig = Rig::with_max_size(1);
    let _leaked = rig.acquire().await;

    for _ in 0..8 {
        let given_up = tokio::time::timeout(SECOND, rig.pool.acquire()).await;
        assert!(given_up.is_err());
        advance(10 * MS).await;
    }

    assert!(
        matches!(rig.pool.health(), Health::Stuck { .. }),
        "{}",
        rig.pool.health()
    );
    advance(60 * SECOND).await;
    assert_eq!(
        rig.pool.health(),
        Health::Busy,
        "no caller has come for a minute"
    );
}

#[tokio::test(start_paused = true)]
async fn opens_that_hang_are_down_from_the_first_timeout_on() {
    let rig = Rig::new(|pool| pool.max_size(2).acquire_timeout(2 * SECOND));
    rig.backend.always(Call::Open, Gate::Hang);
    let pool = rig.pool.clone();
    let caller = tokio::spawn(async move { pool.acquire().await.map(drop) });

    advance(1_900 * MS).await;
    let before = rig.pool.health();
    advance(200 * MS).await;
    let after = rig.pool.health();

    assert_eq!(before, Health::Unproven);
    assert!(matches!(after, Health::Down { .. }), "{after}");
    assert!(!after.is_ready());
    assert!(caller.await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn opens_that_hang_are_down_after_half_of_their_limit() {
    let rig = Rig::new(|pool| {
        pool.max_size(2)
            .acquire_timeout(None)
            .open_timeout(10 * SECOND)
    });
    rig.backend.always(Call::Open, Gate::Hang);
    let pool = rig.pool.clone();
    let caller = tokio::spawn(async move { pool.acquire().await.map(drop) });

    advance(4_900 * MS).await;
    let before = rig.pool.health();
    advance(200 * MS).await;

    assert_eq!(before, Health::Unproven);
    assert!(
        matches!(rig.pool.health(), Health::Down { .. }),
        "{}",
        rig.pool.health()
    );
    caller.abort();
}

/// Twenty resources that report that their server is gone.
#[tokio::test(start_paused = true)]
async fn no_caller_gets_a_resource_that_says_it_is_broken() {
    let rig = Rig::with_max_size(20);
    rig.leave_idle(20).await;
    let mut broken = Vec::new();
    for _ in 0..20 {
        let mut lease = rig.acquire().await;
        lease.broken = false;
        broken.push(lease);
    }
    let flags: Vec<u64> = broken.iter().map(|lease| lease.serial).collect();
    drop(broken);
    settle().await;
    rig.pool.retain(|thing| {
        thing.broken = true;
        true
    });

    for _ in 0..20 {
        let lease = rig.acquire().await;
        assert!(!lease.broken, "resource {} of {flags:?}", lease.serial);
    }
}

/// The same on trays: the resources break while they lie there.
#[tokio::test]
async fn no_caller_gets_a_broken_resource_by_a_tray_either() {
    struct Flagged(Arc<AtomicBool>);

    impl Manager for Flagged {
        type Resource = u64;
        type Error = std::io::Error;

        async fn open(&self) -> Result<u64, std::io::Error> {
            let fresh = self.0.load(Ordering::Relaxed);
            Ok(u64::from(fresh))
        }

        fn is_broken(&self, generation: &mut u64, _: LeaseEnd) -> bool {
            self.0.load(Ordering::Relaxed) && *generation == 0
        }
    }

    let gone = Arc::new(AtomicBool::new(false));
    let pool = Pool::builder(Flagged(Arc::clone(&gone)))
        .max_size(4)
        .build()
        .unwrap();
    for _ in 0..100 {
        drop(pool.acquire().await.unwrap());
    }

    gone.store(true, Ordering::Relaxed);

    for _ in 0..100 {
        assert_eq!(*pool.acquire().await.unwrap(), 1);
        assert!(pool.try_acquire().unwrap().is_none_or(|lease| *lease == 1));
    }
}

#[derive(Debug)]
struct Refused(std::io::Error);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot connect to 127.0.0.1:5432")
    }
}

impl Error for Refused {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

#[tokio::test(start_paused = true)]
async fn every_error_shows_its_causes_in_one_line_and_gives_advice_that_fits() {
    let refuse = || async {
        Err::<(), _>(Refused(std::io::Error::from(
            std::io::ErrorKind::ConnectionRefused,
        )))
    };
    let cause = "opening failed: cannot connect to 127.0.0.1:5432: connection refused";
    let pool = Pool::from_fn(refuse).name("db").build().unwrap();
    let retried = Pool::from_fn(refuse)
        .name("db")
        .on_open_error(OnOpenError::Retry);
    let retried = retried.build().unwrap();

    let open = pool.acquire().await.map(drop).unwrap_err().to_string();
    let late = retried
        .acquire_within(SECOND)
        .await
        .map(drop)
        .unwrap_err()
        .to_string();
    let warm = pool.warm().await.unwrap_err().to_string();
    pool.breaker().trip();
    let unavailable = pool.acquire().await.map(drop).unwrap_err().to_string();

    assert_eq!(open, format!("pool `db`: {cause}"));
    assert!(late.ends_with(&format!("; {cause}")), "{late}");
    assert!(!late.contains("open_timeout"), "{late}");
    assert_eq!(warm, format!("the pool could not be warmed up: {cause}"));
    assert!(
        unavailable.ends_with(&format!("; {cause}")),
        "{unavailable}"
    );
    for text in [open, late, warm, unavailable] {
        assert_eq!(text.lines().count(), 1);
    }
}

/// Two leases of one source line are one entry, whatever their columns.
#[tokio::test(start_paused = true)]
async fn holders_of_one_source_line_are_one_entry() {
    let rig = Rig::with_max_size(2);
    #[rustfmt::skip]
    let (first, second) = (rig.pool.acquire().await.unwrap(), rig.pool.acquire().await.unwrap());

    let late = rig
        .pool
        .acquire_within(10 * MS)
        .await
        .map(drop)
        .unwrap_err();

    let AcquireError::TimedOut(late) = late else {
        panic!("both are out: {late}");
    };
    assert_eq!(late.holders().len(), 1);
    assert_eq!(late.holders()[0].count, 2);
    drop((first, second));
}

#[derive(Default)]
struct Circles(AtomicUsize);

impl Observer for Circles {
    fn nested_acquire(&self, _: &NestedAcquire<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// In `block_on` of a multi-thread runtime, where there is no task.
#[test]
fn the_event_of_a_circle_is_raised_whenever_the_error_says_so() {
    let runtime = with_workers(2);
    let mut circles_found = 0;
    for round in 0..60 {
        let circles = Arc::new(Circles::default());
        let pool = Pool::from_fn(async || Ok::<_, &str>(()))
            .max_size(1)
            .observer(circles.clone())
            .build()
            .unwrap();

        let (first, second) =
            runtime.block_on(async { tokio::join!(pool.acquire(), pool.acquire_within(10 * MS)) });

        let text = second
            .map(drop)
            .expect_err("the first holds it")
            .to_string();
        let said = text.contains("nested acquire");
        let raised = circles.0.load(Ordering::Relaxed);
        assert_eq!(usize::from(said), raised, "round {round}: {text}");
        circles_found += raised;
        drop(first);
    }
    // On a busy machine the first may not take its grant in time. Then there is no circle.
    assert!(circles_found >= 30, "{circles_found} of 60");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_moved_is_said_to_have_been_taken_by_the_waiter() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;
    tokio::spawn(async move {
        tokio::time::sleep(600 * SECOND).await;
        drop(lease);
    });

    let late = rig
        .pool
        .acquire_within(2 * SECOND)
        .await
        .map(drop)
        .unwrap_err();

    let text = late.to_string();
    assert!(
        text.contains("every lease was taken by a task that now waits"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn warming_up_fails_when_the_backend_is_dead_whatever_the_settings() {
    for (min_size, min_idle, least) in [(0, 0, 1), (0, 2, 2), (3, 1, 3)] {
        let rig = Rig::new(|pool| pool.max_size(4).min_size(min_size).min_idle(min_idle));
        rig.backend.always(Call::Open, Gate::Fail);
        assert!(rig.pool.warm().await.is_err());
        rig.backend.heal();

        rig.pool.warm().await.unwrap();

        assert!(rig.pool.status().idle >= least, "{:?}", rig.pool.status());
    }
}

#[tokio::test(start_paused = true)]
async fn leftovers_read_as_a_sentence() {
    let rig = Rig::with_max_size(2);
    let held = rig.acquire().await;
    advance(3 * SECOND).await;

    let left = rig.pool.close_within(SECOND).await;

    let text = left.to_string();
    assert!(text.starts_with("1 leased: resource 1 at "), "{text}");
    assert!(text.contains(" for 4.0s"), "{text}");
    drop(held);
    let none = rig.pool.close_within(SECOND).await;
    assert_eq!(none.to_string(), "nothing left");
}

#[tokio::test(start_paused = true)]
async fn unavailable_is_right_from_a_breaker_that_just_changed() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let mut waiting = rig.wait();
    advance(SECOND).await;

    rig.pool.breaker().trip();
    rig.pool.breaker().reset();

    assert!(waiting.is_served());
    let told = waiting.await.map(drop).unwrap_err().to_string();
    assert!(told.contains("its breaker tripped 0.0ns ago"), "{told}");
    drop(held);
}
