//! A waiter in real time is woken at its deadline, whatever else stands still.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use cenote::{AcquireError, Manager, Pool};
use cenote_testkit::{Call, Gate, Rig};
use tokio::time::{sleep, timeout};

use crate::support::runtimes::{real_now, single, with_workers};

const MS: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(60);

/// So late that even on a busy machine all waiters are in line before it.
const SOON: Duration = Duration::from_secs(1);

/// Returns how long `job` took, and how long a timer for `limit` took that was set at the same
/// moment.
async fn beside_a_timer<T>(
    limit: Duration,
    job: impl Future<Output = T>,
) -> (T, Duration, Duration) {
    let started = real_now();
    let job = async { (job.await, started.elapsed()) };
    let timer = async {
        sleep(limit).await;
        started.elapsed()
    };
    let ((told, took), timer) = tokio::join!(job, timer);
    (told, took, timer)
}

#[test]
fn a_timeout_is_never_early_and_hardly_later_than_a_timer() {
    for runtime in [single(), with_workers(2)] {
        let rig = Rig::with_max_size(1);
        runtime.block_on(async {
            let _held = rig.acquire().await;
            for limit in [Duration::ZERO, MS, 7 * MS, 40 * MS, 1010 * MS] {
                let (told, took, timer) =
                    beside_a_timer(limit, rig.pool.acquire_within(limit)).await;

                assert!(matches!(told, Err(AcquireError::TimedOut(_))), "{told:?}");
                assert!(took >= limit, "{limit:?} was over after {took:?}");
                assert!(
                    took < timer + 250 * MS,
                    "{limit:?}: {took:?}, a timer {timer:?}"
                );
            }
        });
    }
}

#[test]
fn a_thousand_waits_of_many_lengths_all_end_in_time() {
    let runtime = with_workers(2);
    let rig = Rig::with_max_size(1);
    runtime.block_on(async {
        let _held = rig.acquire().await;
        let waits: Vec<_> = (0..1000)
            .map(|nth| {
                let pool = rig.pool.clone();
                let limit = MS * (1 + nth * 7919 % 200);
                tokio::spawn(async move {
                    let (told, took, timer) =
                        beside_a_timer(limit, pool.acquire_within(limit)).await;
                    assert!(matches!(told, Err(AcquireError::TimedOut(_))), "{told:?}");
                    assert!(took >= limit, "{limit:?} was over after {took:?}");
                    assert!(took < timer + 250 * MS, "{took:?}, a timer {timer:?}");
                })
            })
            .collect();
        for wait in waits {
            wait.await.expect("it ended in time");
        }
        assert_eq!(rig.pool.status().waiting, 0);
    });
}

#[test]
fn a_crowd_that_runs_out_of_time_at_once_gets_the_same_report_and_each_is_told() {
    const CROWD: usize = 50;
    for runtime in [single(), with_workers(2)] {
        let rig = Rig::with_max_size(1);
        runtime.block_on(async {
            let _held = rig.acquire().await;
            let deadline = real_now() + SOON;
            let waits: Vec<_> = (0..CROWD)
                .map(|_| {
                    let pool = rig.pool.clone();
                    tokio::spawn(async move { pool.acquire_by(deadline).await })
                })
                .collect();
            for wait in waits {
                let told = timeout(LONG, wait).await.expect("it ends");
                let Err(AcquireError::TimedOut(seen)) = told.expect("it does not panic") else {
                    panic!("an exhausted pool lent something");
                };
                assert!(real_now() >= deadline);
                assert_eq!(seen.status().waiting, CROWD);
                assert_eq!((seen.holders().len(), seen.holders()[0].count), (1, 1));
            }
        });
        let status = rig.pool.status();
        assert_eq!((status.timed_out, status.waiting), (CROWD as u64, 0));
        assert_eq!(rig.recorder.of("timed_out").len(), CROWD);
    }
}

/// Timed out by another waiter, served at the last moment, or dropped: each acquire has one
/// outcome, and nothing is lost.
#[test]
fn in_a_storm_of_short_waits_each_has_exactly_one_outcome() {
    const TASKS: u64 = 100;
    const TURNS: u64 = 60;
    let runtime = with_workers(2);
    let rig = Rig::with_max_size(2);
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let pool = rig.pool.clone();
            runtime.spawn(async move {
                let (mut served, mut late) = (0, 0);
                for turn in 0..TURNS {
                    let nth = task * 31 + turn * 17;
                    let limit = Duration::from_micros(500 + nth % 7 * 300);
                    let acquire = pool.acquire_within(limit);
                    match timeout(MS * (1 + nth as u32 % 3), acquire).await {
                        Ok(Ok(lease)) => {
                            served += 1;
                            sleep(MS / 2).await;
                            drop(lease);
                        }
                        Ok(Err(AcquireError::TimedOut(_))) => late += 1,
                        Ok(Err(error)) => panic!("{error}"),
                        Err(_) => {}
                    }
                }
                (served, late)
            })
        })
        .collect();

    let (mut served, mut late) = (0, 0);
    for task in tasks {
        let ended = runtime.block_on(async { timeout(LONG, task).await });
        let counts: (u64, u64) = ended.expect("it ends").expect("it does not panic");
        served += counts.0;
        late += counts.1;
    }

    let status = rig.pool.status();
    let dropped = TASKS * TURNS - served - late;
    assert!(served > 0 && late > 0 && dropped > 0, "{served}, {late}");
    assert_eq!((status.waiting, status.in_use), (0, 0));
    let given_up = status.timed_out + status.cancelled;
    assert!(status.timed_out >= late && status.acquired >= served);
    assert!((late..=late + dropped).contains(&given_up), "{status:?}");
    runtime.block_on(rig.assert_full_service());
}

/// The first waiter is woken but never run. Another waiter times all of them out, and they are
/// dropped before they read it.
#[test]
fn a_waiter_dropped_before_it_reads_its_timeout_leaves_no_trace() {
    let rig = Rig::with_max_size(1);
    let runtime = single();
    let held = runtime.block_on(rig.acquire());
    let deadline = real_now() + SOON;
    let mut others: Vec<_> = (0..10)
        .map(|_| Box::pin(rig.pool.acquire_by(deadline)))
        .collect();
    for other in &mut others {
        let mut context = Context::from_waker(Waker::noop());
        assert!(other.as_mut().poll(&mut context).is_pending());
    }

    let told = runtime.block_on(async { timeout(LONG, rig.pool.acquire_by(deadline)).await });

    assert!(
        matches!(told, Ok(Err(AcquireError::TimedOut(_)))),
        "{told:?}"
    );
    assert_eq!(rig.pool.status().waiting, 0, "their time is over, too");
    drop(others);
    let status = rig.pool.status();
    assert_eq!((status.timed_out, status.cancelled), (11, 0));
    drop(held);
    runtime.block_on(rig.assert_full_service());
}

#[test]
fn a_waiter_times_out_though_the_runtime_of_the_upkeep_stands_still() {
    let rig = Rig::with_max_size(1);
    let still = single();
    let held = still.block_on(rig.acquire());
    // From here on this runtime is not driven.
    let told =
        with_workers(2).block_on(async { timeout(LONG, rig.pool.acquire_within(20 * MS)).await });

    assert!(
        matches!(told, Ok(Err(AcquireError::TimedOut(_)))),
        "{told:?}"
    );
    drop(held);
    still.block_on(rig.assert_full_service());
}

/// A waker that panics.
#[derive(Default)]
struct PanickingWaker(AtomicBool);

impl Wake for PanickingWaker {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
        panic!("this waker is broken");
    }
}

#[test]
fn a_waker_that_panics_harms_no_other_waiter() {
    let rig = Rig::with_max_size(1);
    let runtime = with_workers(2);
    let held = runtime.block_on(rig.acquire());
    let bad = Arc::new(PanickingWaker::default());
    let waker = Waker::from(Arc::clone(&bad));
    // The first wait ends alone, the other two together with a good waiter.
    let soon = real_now() + SOON;
    let waits = [soon - 10 * MS, soon, soon].map(|deadline| rig.pool.acquire_by(deadline));
    let mut waits = waits.map(Box::pin);
    for wait in &mut waits {
        let mut context = Context::from_waker(&waker);
        assert!(wait.as_mut().poll(&mut context).is_pending());
    }

    let told = runtime.block_on(async { timeout(LONG, rig.pool.acquire_by(soon)).await });

    assert!(
        matches!(told, Ok(Err(AcquireError::TimedOut(_)))),
        "{told:?}"
    );
    assert!(bad.0.load(Ordering::SeqCst), "the other one was woken too");
    drop(held);
}

#[test]
fn one_hung_open_blocks_no_caller_in_real_time() {
    let rig = Rig::with_max_size(2);
    rig.backend.once(Call::Open, Gate::Hang);

    let lease = single().block_on(async { timeout(LONG, rig.pool.acquire()).await });

    assert!(lease.is_ok(), "another one is opened beside it");
}

/// Sends on its channel when it is dropped.
struct Things(#[expect(dead_code, reason = "it is only dropped")] mpsc::Sender<()>);

impl Manager for Things {
    type Resource = ();
    type Error = std::io::Error;

    async fn open(&self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_alarm_that_is_set_keeps_no_pool_alive() {
    let (told, dropped) = mpsc::channel::<()>();
    let runtime = single();
    runtime.block_on(async move {
        let pool = Pool::builder(Things(told))
            .max_size(1)
            .build()
            .expect("the settings are valid");
        let held = pool.acquire().await.expect("it opens");
        let mut waiting = Box::pin(pool.acquire_within(LONG));
        let mut context = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        drop(waiting);
        drop((held, pool));
        tokio::task::yield_now().await;
    });
    drop(runtime);

    let ended = thread::spawn(move || dropped.recv_timeout(LONG).expect_err("nothing is sent"));

    let ended = ended.join().expect("it is only a wait");
    assert_eq!(ended, mpsc::RecvTimeoutError::Disconnected);
}

/// A wait and its pool, both of which end when it is woken.
struct Fuse(Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>);

impl Wake for Fuse {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().expect("nothing panics").take());
    }
}

/// Reports on which thread it is dropped, and is slow to drop.
struct SlowToDrop {
    dropped: mpsc::Sender<Option<String>>,
    go_on: Mutex<mpsc::Receiver<()>>,
}

impl Drop for SlowToDrop {
    fn drop(&mut self) {
        let thread = thread::current().name().map(str::to_owned);
        self.dropped.send(thread).expect("the test listens");
        let go_on = self.go_on.lock().expect("nothing panics");
        go_on.recv_timeout(LONG).expect("the test goes on");
    }
}

impl Manager for SlowToDrop {
    type Resource = ();
    type Error = std::io::Error;

    async fn open(&self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_manager_that_is_slow_to_drop_delays_no_waiter_of_another_pool() {
    let (dropped, hears) = mpsc::channel();
    let (tell, go_on) = mpsc::channel();
    let go_on = Mutex::new(go_on);
    // This runtime is not driven: the alarm has the only other reference.
    let idle = single();
    let _entered = idle.enter();
    let pool = Pool::builder(SlowToDrop { dropped, go_on }).build();
    let pool = pool.expect("the settings are valid");
    pool.suspend();
    let waiting = Box::pin(async move { drop(pool.acquire_within(MS).await) });
    let fuse = Arc::new(Fuse(Mutex::new(Some(waiting))));
    let waker = Waker::from(Arc::clone(&fuse));
    if let Some(waiting) = &mut *fuse.0.lock().expect("nothing panics") {
        let mut context = Context::from_waker(&waker);
        assert!(waiting.as_mut().poll(&mut context).is_pending());
    }

    let thread = hears.recv_timeout(LONG).expect("the pool ends");
    let told = thread::spawn(|| {
        let rig = Rig::with_max_size(1);
        rig.pool.suspend();
        single().block_on(async { timeout(LONG, rig.pool.acquire_within(MS)).await })
    });
    let told = told.join().expect("it is only a wait");
    tell.send(()).expect("it is being dropped");

    assert!(
        matches!(told, Ok(Err(AcquireError::TimedOut(_)))),
        "{told:?}"
    );
    assert_ne!(thread.as_deref(), Some("cenote-alarm"));
}
