//! Observers that panic, block, or call the pool: they do no harm, and no lock is held while they
//! run.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use cenote::{Lease, Observer, WeakPool};
use cenote_testkit::clock::settle;
use cenote_testkit::{Call, Gate, GatedManager, Recorder, Rig};

use crate::support::every_event::every_event;

const SECOND: Duration = Duration::from_secs(1);

/// How long a test waits for another thread that is not blocked.
const PATIENCE: Duration = Duration::from_secs(10);

/// Calls the same function in every event.
struct Each<F>(F);

macro_rules! each {
    ($($method:ident: $event:ident,)*) => {
        impl<F: Fn(&'static str) + Send + Sync + 'static> Observer for Each<F> {
            $(fn $method(&self, _: &cenote::event::$event<'_>) {
                (self.0)(stringify!($method));
            })*
        }

        /// The name of every event.
        const ALL: &[&str] = &[$(stringify!($method),)*];
    };
}

every_event!(each);

/// Raises every event once or more.
async fn raise_everything(rig: &Rig) {
    rig.backend.once(Call::Open, Gate::Fail);
    assert!(rig.pool.acquire().await.is_err());
    let first = rig.acquire().await;
    let mut second = rig.acquire().await;
    // This task holds both leases, so this acquire is nested too.
    assert!(rig.pool.acquire_within(SECOND).await.is_err());
    tokio::time::sleep(31 * SECOND).await;
    rig.backend.once(Call::Clean, Gate::Fail);
    second.dirty = true;
    Lease::release(second).await;
    Lease::discard(first);
    drop(Lease::detach(rig.acquire().await));
    rig.pool.resize(3).expect("it is valid");
    rig.pool.breaker().trip();
    rig.pool.breaker().reset();
    settle().await;
}

/// A rig of two with one more observer, which runs before the recorder or after it.
fn rig_with(observer: impl Observer, first: bool) -> (Rig, Arc<Recorder>) {
    let late = Arc::new(Recorder::default());
    let rig = Rig::new(|pool| {
        let pool = pool.max_size(2).observer(Arc::new(observer));
        match first {
            true => pool.observer(late.clone()),
            false => pool,
        }
    });
    (rig, late)
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_in_every_event_does_no_harm() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let panics = Each(move |event| {
        heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(event);
        panic!("the observer panicked in {event}");
    });
    let (rig, behind) = rig_with(panics, true);

    raise_everything(&rig).await;
    rig.assert_full_service().await;
    rig.pool.close();

    let told = told.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for event in ALL {
        assert!(told.contains(event), "`{event}` was not raised");
        assert!(
            !behind.of(event).is_empty(),
            "the observer behind it was not told `{event}`"
        );
    }
    assert_eq!(behind.lines(), rig.recorder.lines());
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_while_a_holder_panics_does_not_abort() {
    let panics = Each(|event| panic!("the observer panicked in {event}"));
    let (rig, _) = rig_with(panics, false);
    let pool = rig.pool.clone();

    let holder = tokio::spawn(async move {
        let _lease = pool.acquire().await;
        panic!("the holder panicked");
    });

    assert!(holder.await.is_err());
    assert_eq!(rig.recorder.of("released").len(), 1);
    rig.assert_full_service().await;
}

/// Calls the pool from within every event.
struct Caller {
    pool: Arc<OnceLock<WeakPool<GatedManager>>>,
    calls: Arc<AtomicUsize>,
}

thread_local!(static INSIDE: Cell<bool> = const { Cell::new(false) });

impl Caller {
    /// Calls the pool, and ignores the events that its own calls raise.
    fn call(&self) {
        let Some(pool) = self.pool.get().and_then(WeakPool::upgrade) else {
            return;
        };
        if INSIDE.replace(true) {
            return;
        }
        let status = pool.status();
        let _ = (pool.health(), pool.leases(), pool.breaker().state());
        assert!(status.total <= 3);
        pool.retain(|_| true);
        drop(pool.try_acquire());
        self.calls.fetch_add(1, Ordering::Relaxed);
        INSIDE.set(false);
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_may_call_the_pool_from_within_every_event() {
    let (pool, calls) = (Arc::new(OnceLock::new()), Arc::new(AtomicUsize::new(0)));
    let caller = Caller {
        pool: Arc::clone(&pool),
        calls: Arc::clone(&calls),
    };
    let (rig, _) = rig_with(Each(move |_| caller.call()), false);
    pool.set(rig.pool.downgrade()).unwrap();

    raise_everything(&rig).await;
    rig.assert_full_service().await;
    rig.pool.close();

    assert!(calls.load(Ordering::Relaxed) >= 20);
    for event in ALL {
        assert!(
            !rig.recorder.of(event).is_empty(),
            "`{event}` was not raised"
        );
    }
}

#[test]
fn an_observer_that_blocks_blocks_only_the_thread_whose_event_it_is() {
    for blocking in ["acquired", "released", "resized"] {
        let (blocked, is_blocked) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let gate = Mutex::new(Some((blocked, may_go_on)));
        // Blocks the first thread that raises the event, and only that thread.
        let slow = Each(move |event| {
            if event != blocking {
                return;
            }
            let first = gate.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some((blocked, may_go_on)) = first {
                let _ = blocked.send(());
                let _ = may_go_on.recv_timeout(PATIENCE);
            }
        });
        let (rig, _) = rig_with(slow, false);
        let pool = rig.pool.clone();
        let slow_thread = std::thread::spawn(move || {
            drop(pool.acquire_blocking());
            pool.resize(2)
        });
        is_blocked.recv_timeout(PATIENCE).unwrap();

        let pool = rig.pool.clone();
        let (done, is_done) = mpsc::channel();
        let others = std::thread::spawn(move || {
            for _ in 0..100 {
                drop(pool.acquire_blocking().unwrap());
            }
            done.send(pool.status().acquired).unwrap();
        });
        let acquired = is_done.recv_timeout(PATIENCE / 2);

        assert!(acquired.unwrap() >= 100, "`{blocking}` blocks the others");
        assert!(!slow_thread.is_finished());
        go_on.send(()).unwrap();
        others.join().unwrap();
        slow_thread.join().unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observer_that_blocks_during_an_open_does_not_keep_waiters_from_returned_resources() {
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let (blocked, is_blocked) = mpsc::channel();
    let gate = Mutex::new(Some(may_go_on));
    let seen = AtomicUsize::new(0);
    // Blocks the task that opens the second resource.
    let slow = Each(move |event| {
        if event == "opening" && seen.fetch_add(1, Ordering::Relaxed) == 1 {
            let gate = gate.lock().unwrap_or_else(PoisonError::into_inner).take();
            let _ = blocked.send(());
            let _ = gate.map(|gate| gate.recv_timeout(PATIENCE));
        }
    });
    let (rig, _) = rig_with(slow, false);
    let held = rig.acquire().await;
    let pool = rig.pool.clone();
    let waiting = tokio::spawn(async move { pool.acquire().await.map(|lease| Lease::id(&lease)) });
    tokio::task::spawn_blocking(move || is_blocked.recv_timeout(PATIENCE))
        .await
        .unwrap()
        .unwrap();

    drop(held);
    let served = waiting.await.unwrap();

    assert_eq!(served.unwrap(), 1, "the one that came back first");
    go_on.send(()).unwrap();
}
