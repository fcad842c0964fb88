//! Events: each is raised once, with its data, in order, to every observer.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cenote::{Lease, Observer, Pool};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Backend, Call, Gate, GatedManager, GatedPool, Recorder, Rig};

use crate::support::every_event::every_event;
use crate::support::hooks::{before_acquire, before_release};

const SECOND: Duration = Duration::from_secs(1);

/// Records every event with all its data, as `Debug` shows it.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Log {
    fn write(&self, event: &dyn Debug) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(format!("{event:?}"));
    }

    /// Returns the events since the last call.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

macro_rules! writes_everything {
    ($($method:ident: $event:ident,)*) => {
        impl Observer for Log {
            $(fn $method(&self, event: &cenote::event::$event<'_>) {
                self.write(event);
            })*
        }
    };
}

every_event!(writes_everything);

/// Returns the first words of the lines, which are the names of the events.
fn names(recorder: &Recorder) -> Vec<String> {
    let lines = recorder.lines();
    let name = |line: &String| line.split(' ').next().unwrap_or_default().to_owned();
    lines.iter().map(name).collect()
}

#[tokio::test(start_paused = true)]
async fn the_life_of_a_resource_is_observed_in_order() {
    let rig = Rig::with_max_size(1);

    drop(rig.acquire().await);
    Lease::discard(rig.acquire().await);
    settle().await;
    rig.pool.close();

    assert_eq!(
        names(&rig.recorder),
        [
            "pool_opened",
            "opening",
            "opened",
            "acquired",
            "released",
            "acquired",
            "released",
            "discarded",
            "closed",
            "pool_closed",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_observed_with_its_times_and_its_call_site() {
    let rig = Rig::with_max_size(1);
    rig.backend.always(Call::Open, Gate::Slow(2 * SECOND));

    let (lease, line) = (rig.pool.acquire().await.unwrap(), line!());
    advance(3 * SECOND).await;
    let site = Lease::site(&lease);
    drop(lease);
    drop(rig.pool.acquire().await.unwrap());

    assert_eq!((site.file(), site.line()), (file!(), line));
    assert_eq!(rig.recorder.of("opened"), ["opened 1 took=2s"]);
    let acquired = rig.recorder.of("acquired");
    assert_eq!(acquired[0], format!("acquired 1 waited=2s {site}"));
    assert!(
        acquired[1].starts_with("acquired 1 waited=0ns "),
        "{acquired:?}"
    );
    assert_eq!(
        rig.recorder.of("released")[0],
        format!("released 1 held=3s {site}")
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_open_is_observed_with_its_error_and_duration() {
    let rig = Rig::new(|pool| pool.max_size(1).open_timeout(3 * SECOND));
    for gate in [Gate::Fail, Gate::Panic, Gate::Hang] {
        rig.backend.once(Call::Open, gate);
        assert!(rig.pool.acquire().await.is_err());
    }

    let failed = rig.recorder.of("open_failed");

    assert_eq!(
        failed,
        [
            "open_failed took=0ns opening failed: the backend refused Open",
            "open_failed took=0ns opening panicked: the backend panicked in Open",
            "open_failed took=3s opening took longer than 3.0s: see `open_timeout`",
        ]
    );
    assert_eq!(rig.recorder.of("opening").len(), 3);
    assert!(rig.recorder.of("opened").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_observed_with_the_status_before_its_error_returns() {
    let rig = Rig::with_max_size(1);
    let _held = rig.acquire().await;
    let (pool, recorder) = (rig.pool.clone(), Arc::clone(&rig.recorder));

    let waiter = tokio::spawn(async move {
        let timed_out = pool.acquire_within(2 * SECOND).await;
        // There is no await in between: every line was recorded before the error returned.
        (timed_out.is_err(), recorder.of("timed_out"))
    });

    let (failed, told) = waiter.await.unwrap();
    assert!(failed);
    assert_eq!(told, ["timed_out waited=2s waiting=1"]);
}

#[tokio::test(start_paused = true)]
async fn a_leak_is_observed_once_with_its_call_site_and_again_on_return() {
    let rig = Rig::new(|pool| pool.max_size(1).leak_after(10 * SECOND));
    let lease = rig.acquire().await;
    let site = Lease::site(&lease);

    tokio::time::sleep(9 * SECOND).await;
    assert!(rig.recorder.of("leaked").is_empty(), "not yet");
    tokio::time::sleep(50 * SECOND).await;
    assert!(rig.recorder.of("returned_late").is_empty(), "not yet");
    drop(lease);
    drop(rig.acquire().await);

    assert_eq!(rig.recorder.of("leaked"), [format!("leaked 1 {site}")]);
    assert_eq!(
        rig.recorder.of("returned_late"),
        ["returned_late 1 held=59s"]
    );
    let names = names(&rig.recorder);
    let late = names.iter().position(|name| name == "returned_late");
    let released = names.iter().position(|name| name == "released");
    assert!(released < late, "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn every_callback_that_fails_is_observed_by_its_name() {
    let rig = Rig::new(|pool| {
        pool.max_size(1)
            .check_after_idle(Duration::ZERO)
            .before_acquire(before_acquire)
            .before_release(before_release)
    });
    for (call, callback) in [
        (Call::Check, "Check"),
        (Call::IsBroken, "Inspect"),
        (Call::NeedsCleaning, "Inspect"),
        (Call::Clean, "Clean"),
        (Call::Close, "Close"),
        (Call::BeforeAcquire, "BeforeAcquire"),
        (Call::BeforeRelease, "BeforeRelease"),
    ] {
        Lease::release(rig.acquire().await).await;
        let before = rig.recorder.of("callback_failed").len();
        rig.backend.once(call, Gate::Panic);
        let mut lease = rig.acquire().await;
        lease.dirty = call == Call::Clean;
        lease.broken = call == Call::Close;
        Lease::release(lease).await;
        settle().await;

        let told = rig.recorder.of("callback_failed").split_off(before);
        assert_eq!(told.len(), 1, "{call:?}: {told:?}");
        let end = format!(" {callback} panicked: the backend panicked in {call:?}");
        assert!(told[0].ends_with(&end), "{told:?}");
    }
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_fails_or_hangs_is_observed_with_the_cause() {
    let rig = Rig::new(|pool| pool.max_size(1).clean_timeout(3 * SECOND));
    for gate in [Gate::Fail, Gate::Hang] {
        rig.backend.once(Call::Clean, gate);
        let mut lease = rig.acquire().await;
        lease.dirty = true;
        Lease::release(lease).await;
    }

    let told = rig.recorder.of("callback_failed");

    assert_eq!(
        told,
        [
            "callback_failed 1 Clean the backend refused Clean",
            "callback_failed 2 Clean took longer than 3.0s",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_pool_its_size_and_its_breaker_are_observed() {
    let rig = Rig::new(|pool| pool.name("orders").max_size(2));
    let held = rig.acquire().await;

    rig.pool.resize(5).unwrap();
    rig.pool.breaker().trip();
    rig.pool.close();
    rig.pool.close();
    drop(held);
    drop(rig.pool);

    let told = ["pool_opened", "resized", "breaker_changed", "pool_closed"]
        .map(|name| rig.recorder.of(name));
    assert_eq!(
        told,
        [
            ["pool_opened orders 2"],
            ["resized 2 5"],
            ["breaker_changed active inactive"],
            ["pool_closed in_use=1"],
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_refused_resize_is_not_observed() {
    let rig = Rig::with_max_size(2);

    assert!(rig.pool.resize(0).is_err());

    assert!(rig.recorder.of("resized").is_empty());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_closes_the_pool_and_is_observed_once() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    let Rig { pool, recorder, .. } = rig;
    let other = pool.clone();
    drop(pool);
    assert!(recorder.of("pool_closed").is_empty(), "one handle is left");

    drop(other);
    settle().await;

    assert_eq!(recorder.of("pool_closed"), ["pool_closed in_use=0"]);
    assert_eq!(recorder.of("closed"), ["closed 1 pool_closed"]);
}

/// A pool with these observers on which everything happens once or more.
async fn everything_happens(observers: Vec<Arc<dyn Observer>>) -> (GatedPool, Arc<Backend>) {
    let backend = Arc::new(Backend::default());
    let mut builder = Pool::builder(GatedManager(Arc::clone(&backend)));
    for observer in observers {
        builder = builder.observer(observer);
    }
    let pool = builder
        .name("orders")
        .max_size(2)
        .build()
        .expect("it is valid");

    backend.once(Call::Open, Gate::Fail);
    assert!(pool.acquire().await.is_err());
    let first = pool.acquire().await.expect("it opens");
    let mut second = pool.acquire().await.expect("it opens");
    // This task holds both leases, so this acquire is nested too.
    assert!(pool.acquire_within(SECOND).await.is_err());
    tokio::time::sleep(31 * SECOND).await;
    backend.once(Call::Clean, Gate::Fail);
    second.dirty = true;
    Lease::release(second).await;
    Lease::discard(first);
    pool.resize(3).expect("it is valid");
    pool.breaker().trip();
    pool.breaker().reset();
    settle().await;
    (pool, backend)
}

#[tokio::test(start_paused = true)]
async fn every_event_names_its_pool_and_carries_its_data() {
    let log = Arc::new(Log::default());

    let (pool, _) = everything_happens(vec![log.clone()]).await;
    pool.close();

    let lines = log.take();
    for event in [
        "PoolOpened { pool: \"orders\", max_size: 2 }",
        "PoolClosed { pool: \"orders\", in_use: 0 }",
        "Opening { pool: \"orders\" }",
        "Opened { pool: \"orders\", id: 1, took: 0ns }",
        "OpenFailed { pool: \"orders\", took: 0ns, error: Failed(Fault(Open)) }",
        "Acquired { pool: \"orders\", id: 1, waited: 0ns, site: Location {",
        "Released { pool: \"orders\", id: 1, held: 32",
        "Discarded { pool: \"orders\", id: 1, site: Location {",
        "Closed { pool: \"orders\", id: 1, reason: Discarded }",
        "Closed { pool: \"orders\", id: 2, reason: FailedClean }",
        "CallbackFailed { pool: \"orders\", id: 2, callback: Clean, message: \"the backend",
        "AcquireTimedOut { pool: \"orders\", site: Location {",
        "Leaked { pool: \"orders\", holder: Holder { id: 2, site: Location {",
        "ReturnedLate { pool: \"orders\", id: 1, held: 32",
        "NestedAcquire { pool: \"orders\", site: Location {",
        "BreakerChanged { pool: \"orders\", from: Active, to: Inactive, cause: None }",
        "Resized { pool: \"orders\", from: 2, to: 3 }",
    ] {
        assert!(
            lines.iter().any(|line| line.starts_with(event)),
            "`{event}` is not in {lines:#?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn several_observers_are_told_the_same_in_the_same_order() {
    let logs = [(); 3].map(|()| Arc::new(Log::default()));
    let observers = logs.iter().map(|log| log.clone() as Arc<dyn Observer>);

    let (pool, _) = everything_happens(observers.collect()).await;
    drop(pool);

    let [first, second, third] = logs.map(|log| log.take());
    assert!(first.len() > 20, "{first:#?}");
    assert_eq!(first, second);
    assert_eq!(first, third);
}

#[tokio::test(start_paused = true)]
async fn an_observer_without_methods_is_enough() {
    struct Nothing;
    impl Observer for Nothing {}

    let (pool, _) = everything_happens(vec![Arc::new(Nothing)]).await;

    assert_eq!(pool.status().leaked, 2);
}

#[tokio::test(start_paused = true)]
async fn a_detached_lease_is_observed_with_its_call_site() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;

    drop(Lease::detach(lease));

    assert_eq!(rig.recorder.of("detached"), ["detached 1"]);
    assert!(rig.recorder.of("released").is_empty());
}
