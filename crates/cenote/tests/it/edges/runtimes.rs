//! Runtimes that are not driven, that have no timers, and a process that forks.

use std::future::pending;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cenote::Pool;
use cenote::breaker::{BreakerState, ConsecutiveFailures};
use cenote_testkit::clock::{eventually, now};
use cenote_testkit::{Call, Gate, Rig};
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::support::runtimes::single;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Real time: a runtime that is not driven has no clock that could be advanced.
#[test]
fn opens_that_hang_on_a_runtime_that_is_not_driven_do_not_stop_growth() {
    for max_opening in [1, 4] {
        let rig = Rig::new(|pool| pool.max_size(12).max_opening(max_opening));
        rig.backend.always(Call::Open, Gate::Hang);
        let first = single();
        first.block_on(async {
            for _ in 0..4 {
                let pool = rig.pool.clone();
                tokio::spawn(async move { pool.acquire().await.map(drop) });
            }
            timeout(20 * MS, pending::<()>()).await.ok();
        });
        let hung = rig.pool.status().opening;
        assert!(hung > 0 && hung <= max_opening, "{hung}");
        rig.backend.heal();

        let second = single();
        let asked = now();
        let lease = second.block_on(rig.pool.acquire_within(10 * SECOND));

        assert!(lease.is_ok(), "{lease:?}");
        assert!(asked.elapsed() < 5 * SECOND, "{:?}", asked.elapsed());
        drop(lease);
        drop(first);
    }
}

/// Real time, for the same reason.
#[test]
fn the_next_caller_takes_over_upkeep_that_is_not_driven() {
    let rig = Rig::new(|pool| {
        let strategy = ConsecutiveFailures::new(1).recover_after(100 * MS, 100 * MS);
        pool.max_size(2).breaker(strategy)
    });
    let first = single();
    first.block_on(async { drop(rig.acquire().await) });
    rig.backend.always(Call::Open, Gate::Fail);
    let second = single();
    second.block_on(async {
        rig.pool.invalidate();
        assert!(rig.pool.acquire().await.is_err());
    });
    eventually("the breaker trips", || {
        rig.pool.breaker().state() == BreakerState::Inactive
    });
    rig.backend.heal();

    let begun = now();
    let recovered = second.block_on(async {
        loop {
            match rig.pool.acquire().await {
                Ok(_) => return true,
                Err(_) if begun.elapsed() > 15 * SECOND => return false,
                Err(_) => tokio::time::sleep(20 * MS).await,
            }
        }
    });

    assert!(recovered, "the first runtime is alive and not driven");
    drop(first);
}

#[test]
fn a_runtime_without_timers_is_enough() {
    let without_timers = Builder::new_current_thread()
        .build()
        .expect("a runtime can be started");
    let rig = Rig::new(|pool| pool.max_size(1).idle_timeout(50 * MS));

    let (lease, ended) = without_timers.block_on(async {
        let lease = rig.acquire().await;
        let asked = now();
        let ended = rig.pool.acquire_within(50 * MS).await.map(drop);
        assert!(asked.elapsed() < 2 * SECOND);
        (lease, ended)
    });

    assert!(ended.is_err());
    drop(lease);
    let begun = now();
    without_timers.block_on(async {
        while rig.pool.status().idle > 0 && begun.elapsed() < 5 * SECOND {
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(rig.pool.status().idle, 0, "upkeep runs, too");
    assert_eq!(rig.backend.calls(Call::Open), 1, "nothing was opened twice");
}

#[test]
fn an_open_that_hangs_on_a_runtime_without_timers_ends_by_its_limit() {
    let without_timers = Builder::new_current_thread()
        .build()
        .expect("a runtime can be started");
    let rig = Rig::new(|pool| pool.max_size(1).open_timeout(100 * MS));
    rig.backend.always(Call::Open, Gate::Hang);

    let asked = now();
    let ended = without_timers.block_on(rig.pool.acquire().map_or_err());

    assert!(
        ended.contains("opening took longer than 100.0ms"),
        "{ended}"
    );
    assert!(asked.elapsed() < 3 * SECOND);
}

/// The text of an error.
trait MapOrErr {
    /// # Cancel safety
    /// As the acquire.
    async fn map_or_err(self) -> String;
}

impl<F, T, E> MapOrErr for F
where
    F: Future<Output = Result<T, E>>,
    E: std::fmt::Display,
{
    async fn map_or_err(self) -> String {
        self.await
            .err()
            .map_or_else(|| "it succeeded".into(), |error| error.to_string())
    }
}

/// The child has only the thread that forked: the alarm's thread is gone.
#[test]
fn a_forked_process_has_timeouts_and_can_open() {
    let pool = Pool::from_fn(async || Ok::<_, &str>(()))
        .max_size(2)
        .build()
        .unwrap();
    let (first, held) = (single(), pool.acquire_blocking().unwrap());
    first.block_on(async {
        let _held = pool.acquire().await.unwrap();
        assert!(pool.acquire_within(20 * MS).await.is_err());
    });
    let held_by_parent = pool.try_acquire().unwrap().expect("one is idle");

    match fork::fork().expect("the process can fork") {
        fork::Fork::Child => {
            let runtime = single();
            let begun = now();
            let late = runtime.block_on(async {
                timeout(5 * SECOND, pool.acquire_within(1_200 * MS))
                    .await
                    .map(|ended| ended.is_err())
            });
            let in_time = late == Ok(true) && begun.elapsed() < 3 * SECOND;
            // By the thread of this library that stands in for a runtime.
            cenote::Lease::discard(held_by_parent);
            let opened = pool.acquire_blocking_within(3 * SECOND).is_ok();
            std::process::exit(i32::from(!in_time) + 2 * i32::from(!opened));
        }
        fork::Fork::Parent(child) => {
            let status = fork::waitpid(child).expect("the child ends");
            assert_eq!(status, 0, "the child's exit code is in the second byte");
            drop((held, held_by_parent));
        }
    }
}

/// Real threads, without a runtime.
#[test]
fn many_threads_without_a_runtime_are_served_and_time_out() {
    let pool = Pool::from_fn(async || Ok::<_, &str>(()))
        .max_size(2)
        .build()
        .unwrap();
    let pool = Arc::new(pool);
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                for _ in 0..50 {
                    if let Ok(lease) = pool.acquire_blocking_within(2 * SECOND) {
                        thread::yield_now();
                        drop(lease);
                    }
                }
            })
        })
        .collect();

    for thread in threads {
        thread.join().expect("it does not panic");
    }

    assert_eq!(pool.status().in_use, 0);
    assert_eq!(pool.status().timed_out, 0);
}
