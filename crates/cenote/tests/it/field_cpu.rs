//! Work after the release, as puddle measured it: tasks that compute on after they gave their lease back.
//!
//! The pool hands a returned resource to the first in line. tokio lets the woken task run next on the thread of the one who woke it, and no
//! other thread may take it from there: it has its resource, and waits until that thread is free. So what is lost with each return is as long
//! as the computing that follows, unless the one who returned it yields first. `Lease::release` does, where somebody was served; a drop
//! cannot.
//!
//! The holds are long enough that the pool and not the processor is the bottleneck: 4 resources held for 20 ms let 200 operations pass per
//! second, which compute for 0.2 s in all. Real time, so the limits are generous.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cenote::Lease;
use cenote_testkit::Rig;
use tokio::task::JoinSet;
use tokio::time::sleep;

const SIZE: usize = 4;
const TASKS: usize = 100;
const HOLD: Duration = Duration::from_millis(20);
const WORK: Duration = Duration::from_millis(1);

#[expect(clippy::disallowed_methods, reason = "the test measures real time")]
fn now() -> Instant {
    Instant::now()
}

/// Computes for `WORK`, without a pause.
fn compute() {
    let start = now();
    while start.elapsed() < WORK {
        black_box(());
    }
}

/// All tasks acquire once, hold, give back, politely or not, and compute. Answers by how much that took longer than the holds
/// alone, as they were measured, would have: 1 is ideal.
async fn stretch(polite: bool) -> f64 {
    let rig = Rig::with_max_size(SIZE);
    let held = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    let start = now();
    for _ in 0..TASKS {
        let (pool, held) = (rig.pool.clone(), Arc::clone(&held));
        tasks.spawn(async move {
            let lease = pool.acquire().await.expect("everybody is served");
            let got = now();
            sleep(HOLD).await;
            held.fetch_add(got.elapsed().as_micros() as usize, Ordering::Relaxed);
            if polite {
                Lease::release(lease).await;
            } else {
                drop(lease);
            }
            compute();
        });
    }
    tasks.join_all().await;
    let ideal = held.load(Ordering::Relaxed) / SIZE;
    start.elapsed().as_micros() as f64 / ideal as f64
}

/// The loss of 1 ms in 20 comes to 1.05, and to some more where two return on one thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn puddle_work_after_a_drop_costs_no_more_than_itself() {
    let stretched = stretch(false).await;

    println!("{stretched:.3} times the ideal");
    assert!(stretched < 1.5, "{stretched:.2} times the ideal");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn puddle_work_after_a_polite_release_costs_nothing() {
    let stretched = stretch(true).await;

    println!("{stretched:.3} times the ideal");
    assert!(stretched < 1.5, "{stretched:.2} times the ideal");
}
