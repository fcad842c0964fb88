//! A storm of cancellations on a real multi-thread runtime: many tasks drop their futures at any
//! await. Nothing leaks, no caller waits for ever, and nothing needless is opened.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cenote::{AcquireError, Lease};
use cenote_testkit::{Call, Fault, Gate, GatedManager, Rig, cut};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const SLOTS: usize = 8;
const TASKS: usize = 64;

/// Longer than any test here takes, on any machine.
const LONG: Duration = Duration::from_secs(60);

/// Random numbers that replay: xorshift.
struct Dice(u64);

impl Dice {
    fn new(task: usize) -> Self {
        Self(0x9E37_79B9_7F4A_7C15 ^ (task as u64 + 1).wrapping_mul(0xD134_2543_DE82_EF95))
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// What a task in the storm does with a lease.
type Use = fn(&mut Dice, Lease<GatedManager>);

/// `TASKS` tasks acquire `rounds` times each, and are dropped at random points. Returns how many
/// leases they got.
async fn storm(rig: &Arc<Rig>, rounds: usize, use_it: Use) -> usize {
    let served = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (rig, served) = (Arc::clone(rig), Arc::clone(&served));
        tasks.spawn(async move {
            let mut dice = Dice::new(task);
            for _ in 0..rounds {
                if let Some(Ok(lease)) = acquire_somehow(&rig, &mut dice).await {
                    served.fetch_add(1, Ordering::Relaxed);
                    use_it(&mut dice, lease);
                }
            }
        });
    }
    let ended = timeout(LONG, tasks.join_all()).await;
    ended.expect("a caller waits for ever");
    served.load(Ordering::Relaxed)
}

/// An acquire that is dropped by a timer, after some polls, by a race that it loses, or not at all.
async fn acquire_somehow(
    rig: &Rig,
    dice: &mut Dice,
) -> Option<Result<Lease<GatedManager>, AcquireError<Fault>>> {
    let acquiring = rig.pool.acquire_within(LONG);
    let chance = dice.below(51);
    match dice.below(4) {
        0 => timeout(Duration::from_micros(chance), acquiring).await.ok(),
        1 => cut(chance as usize % 4, acquiring).await,
        2 => tokio::select! {
            biased;
            served = acquiring => Some(served),
            () = yields(chance % 8) => None,
        },
        _ => Some(acquiring.await),
    }
}

async fn yields(times: u64) {
    for _ in 0..times {
        tokio::task::yield_now().await;
    }
}

/// Asserts that after a storm nothing is out, no caller waits, and all slots can be used.
async fn assert_calm(rig: &Rig) {
    let status = rig.pool.status();
    assert_eq!((status.in_use, status.waiting), (0, 0), "{status:#?}");
    assert_eq!(status.acquired, status.released, "{status:#?}");
    assert_eq!(status.timed_out, 0, "a caller was stuck");
    rig.assert_full_service().await;
    assert!(rig.backend.peak() <= SLOTS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_cancelled_acquires_loses_no_slot_and_opens_nothing_needless() {
    let rig = Arc::new(Rig::with_max_size(SLOTS));

    let served = storm(&rig, 320, |_, lease| drop(lease)).await;

    assert!(served > 5_000, "only {served} were served");
    let status = rig.pool.status();
    assert!(status.opened <= SLOTS as u64, "{status:#?}");
    assert_eq!(status.closes.total(), 0, "something healthy was destroyed");
    assert_calm(&rig).await;
    assert_eq!(rig.pool.status().opened, SLOTS as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_while_opens_take_a_while_and_much_is_discarded_loses_no_slot() {
    let rig = Arc::new(Rig::with_max_size(SLOTS));
    rig.backend
        .always(Call::Open, Gate::Slow(Duration::from_millis(1)));

    storm(&rig, 30, |dice, lease| match dice.below(4) {
        0 => Lease::discard(lease),
        1 => drop(Lease::detach(lease)),
        _ => drop(lease),
    })
    .await;

    let status = rig.pool.status();
    assert_eq!(
        status.acquired,
        status.released + status.detached,
        "{status:#?}"
    );
    assert_eq!((status.in_use, status.waiting, status.timed_out), (0, 0, 0));
    // Detached resources live on for a moment outside the pool, so the peak of the backend says
    // nothing here.
    assert_all_can_be_had(&rig).await;
}

async fn assert_all_can_be_had(rig: &Rig) {
    rig.backend.heal();
    let mut leases = Vec::new();
    for _ in 0..SLOTS {
        leases.push(
            rig.pool
                .acquire_within(LONG)
                .await
                .expect("a slot was lost"),
        );
    }
    let status = rig.pool.status();
    assert_eq!((status.in_use, status.total), (SLOTS, SLOTS));
    assert!(matches!(rig.pool.try_acquire(), Ok(None)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_dirty_and_broken_returns_loses_no_slot() {
    let rig = Arc::new(Rig::with_max_size(SLOTS));

    storm(&rig, 80, |dice, mut lease| {
        assert!(!lease.dirty && !lease.broken, "lent although unfit");
        match dice.below(8) {
            0 => lease.broken = true,
            1..=4 => lease.dirty = true,
            _ => {}
        }
    })
    .await;

    assert!(rig.backend.calls(Call::Clean) > 100);
    sleep(Duration::from_millis(20)).await;
    assert_calm(&rig).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_cancelled_releases_loses_no_slot() {
    let rig = Arc::new(Rig::with_max_size(SLOTS));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let rig = Arc::clone(&rig);
        tasks.spawn(async move {
            let mut dice = Dice::new(task);
            for _ in 0..40 {
                let mut lease = rig.pool.acquire_within(LONG).await.unwrap();
                assert!(!lease.dirty, "lent although dirty");
                lease.dirty = true;
                cut(dice.below(4) as usize, Lease::release(lease)).await;
            }
        });
    }

    let ended = timeout(LONG, tasks.join_all()).await;

    ended.expect("a caller waits for ever");
    assert_eq!(rig.pool.status().opened, SLOTS as u64);
    sleep(Duration::from_millis(20)).await;
    assert_calm(&rig).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_aborted_tasks_that_hold_or_wait_loses_no_slot() {
    let rig = Arc::new(Rig::with_max_size(SLOTS));

    for round in 0..60 {
        let tasks: Vec<_> = (0..TASKS / 2)
            .map(|_| {
                let rig = Arc::clone(&rig);
                tokio::spawn(async move {
                    let _lease = rig.pool.acquire_within(LONG).await.unwrap();
                    std::future::pending::<()>().await;
                })
            })
            .collect();
        yields(round % 7).await;
        for task in tasks {
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
        }
    }

    assert_calm(&rig).await;
    assert_eq!(rig.pool.status().closes.total(), 0);
}
