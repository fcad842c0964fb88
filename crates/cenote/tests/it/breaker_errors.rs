//! A strategy is told the error of a failure and its class, and can be replaced on a living pool.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote::breaker::{BreakerState, ConsecutiveFailures, Recovery, Verdict};
use cenote::error::ErrorClass;
use cenote::{Manager, Pool};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig};

use crate::support::scribe::Scribe;

const SECOND: Duration = Duration::from_secs(1);

/// Fails in every callback with an error of this kind.
struct Sockets(Arc<Mutex<Option<io::ErrorKind>>>);

impl Sockets {
    fn answer(&self) -> io::Result<()> {
        let kind = *self.0.lock().expect("nothing panics while it is held");
        kind.map_or(Ok(()), |kind| Err(kind.into()))
    }
}

impl Manager for Sockets {
    type Resource = ();
    type Error = io::Error;

    async fn open(&self) -> io::Result<()> {
        self.answer()
    }

    async fn check(&self, (): &mut ()) -> io::Result<()> {
        self.answer()
    }
}

fn errors(scribe: &Scribe) -> Vec<(ErrorClass, Option<String>)> {
    scribe.with(|notes| notes.errors.drain(..).collect())
}

#[tokio::test(start_paused = true)]
async fn the_error_of_an_open_has_the_class_of_its_kind() {
    for (kind, class) in [
        (io::ErrorKind::ConnectionRefused, ErrorClass::Unreachable),
        (io::ErrorKind::PermissionDenied, ErrorClass::Denied),
        (io::ErrorKind::InvalidData, ErrorClass::Other),
    ] {
        let scribe = Scribe::default();
        let sockets = Sockets(Arc::new(Mutex::new(Some(kind))));
        let pool = Pool::builder(sockets)
            .breaker(scribe.clone())
            .build()
            .unwrap();

        assert!(pool.acquire().await.is_err());

        let told = errors(&scribe);
        assert_eq!((told.len(), told[0].0), (1, class), "{told:?}");
        let text = told[0].1.as_deref().unwrap();
        assert!(text.contains(&io::Error::from(kind).to_string()), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_check_is_told_too() {
    let scribe = Scribe::default();
    let kind = Arc::new(Mutex::new(None));
    let pool = Pool::builder(Sockets(Arc::clone(&kind))).check_after_idle(SECOND);
    let pool = pool.max_size(1).breaker(scribe.clone()).build().unwrap();
    drop(pool.acquire().await.unwrap());
    advance(2 * SECOND).await;
    *kind.lock().unwrap() = Some(io::ErrorKind::ConnectionReset);

    assert!(pool.acquire().await.is_err());

    let told = errors(&scribe);
    let reset = io::Error::from(io::ErrorKind::ConnectionReset).to_string();
    assert_eq!(told[0], (ErrorClass::Unreachable, Some(reset)), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hang_and_a_panic_have_classes_of_their_own() {
    for (gate, class) in [
        (Gate::Hang, ErrorClass::TimedOut),
        (Gate::Panic, ErrorClass::Panicked),
        (Gate::Fail, ErrorClass::Other),
    ] {
        for call in [Call::Open, Call::Clean] {
            let scribe = Scribe::default();
            let rig = Rig::new(|pool| {
                let pool = pool.max_size(1).open_timeout(SECOND).clean_timeout(SECOND);
                pool.breaker(scribe.clone())
            });
            rig.backend.once(call, gate);

            if let Ok(mut lease) = rig.pool.acquire().await {
                lease.dirty = true;
                drop(lease);
            }
            tokio::time::sleep(2 * SECOND).await;

            let told = errors(&scribe);
            assert_eq!(
                (told.len(), told[0].0),
                (1, class),
                "{call:?} {gate:?}: {told:?}"
            );
            assert!(told[0].1.is_some());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_resource_has_no_error() {
    let scribe = Scribe::default();
    let rig = scribe.rig(1);
    rig.acquire().await.broken = true;
    settle().await;

    assert_eq!(errors(&scribe), [(ErrorClass::Other, None)]);
}

/// Its classification panics.
struct Panics;

impl Manager for Panics {
    type Resource = ();
    type Error = String;

    async fn open(&self) -> Result<(), String> {
        Err("no".to_owned())
    }

    fn classify(&self, _: &String) -> ErrorClass {
        panic!("a manager's bug")
    }
}

#[tokio::test(start_paused = true)]
async fn a_classification_that_panics_is_any_other_error() {
    let scribe = Scribe::default();
    let pool = Pool::builder(Panics)
        .breaker(scribe.clone())
        .build()
        .unwrap();

    assert!(pool.acquire().await.is_err());

    assert_eq!(errors(&scribe)[0].0, ErrorClass::Other);
    assert_eq!(pool.status().total, 0, "no slot is lost");
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_is_set_later_hears_every_report_from_then_on() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    let scribe = Scribe::default();

    rig.pool.breaker().set_strategy(scribe.clone());
    drop(rig.acquire().await);
    rig.pool.breaker().remove_strategy();
    drop(rig.acquire().await);

    assert_eq!(scribe.take_reports(), [None]);
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_replaces_another_decides_alone() {
    let first = Scribe::default();
    let rig = first.rig(1);
    let second = Scribe::default();
    second.with(|notes| notes.on_failure = Some(Verdict::Deactivate));

    rig.pool.breaker().set_strategy(second.clone());
    rig.backend.once(Call::Open, Gate::Fail);
    assert!(rig.pool.acquire().await.is_err());

    assert_eq!(rig.pool.breaker().state(), BreakerState::Inactive);
    assert_eq!(
        (first.take_reports().len(), second.take_reports().len()),
        (0, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_breaker_that_was_tripped_by_hand_recovers_by_the_strategy_that_is_set_later() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    rig.pool.breaker().trip();
    advance(60 * SECOND).await;
    assert_eq!(rig.pool.breaker().state(), BreakerState::Inactive);
    let scribe = Scribe::default();
    scribe.with(|notes| notes.recovery = Some(Recovery::Now));

    rig.pool.breaker().set_strategy(scribe.clone());
    settle().await;

    assert_eq!(rig.pool.breaker().state(), BreakerState::Recovering);
    assert_eq!(scribe.asked(), [60 * SECOND]);
}

#[tokio::test(start_paused = true)]
async fn an_inactive_breaker_whose_strategy_is_removed_stays_inactive() {
    let rig = Rig::new(|pool| {
        let strategy = ConsecutiveFailures::new(1).recover_after(SECOND, SECOND);
        pool.max_size(1).breaker(strategy)
    });
    rig.backend.once(Call::Open, Gate::Fail);
    assert!(rig.pool.acquire().await.is_err());

    rig.pool.breaker().remove_strategy();
    advance(60 * SECOND).await;

    assert_eq!(rig.pool.breaker().state(), BreakerState::Inactive);
    rig.pool.breaker().reset();
    rig.assert_full_service().await;
}

/// Calls so many opens off.
struct CallsOff(AtomicUsize);

impl Manager for CallsOff {
    type Resource = ();
    type Error = &'static str;

    async fn open(&self) -> Result<(), &'static str> {
        tokio::task::yield_now().await;
        let one_less = |left: usize| left.checked_sub(1);
        match self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
        {
            Ok(_) => Err("not needed"),
            Err(_) => Ok(()),
        }
    }

    fn classify(&self, _: &&'static str) -> ErrorClass {
        ErrorClass::CalledOff
    }
}

#[tokio::test(start_paused = true)]
async fn an_open_that_is_called_off_is_no_failure_and_is_tried_again_if_a_caller_waits() {
    let scribe = Scribe::default();
    let pool = Pool::builder(CallsOff(AtomicUsize::new(3))).breaker(scribe.clone());
    let pool = pool.build().unwrap();

    assert!(pool.try_acquire().unwrap().is_none());
    settle().await;
    let status = pool.status();
    assert_eq!((status.total, status.opening), (0, 0));

    let lease = pool.acquire().await;
    assert!(lease.is_ok());
    assert_eq!(pool.status().open_failed, 0);
    assert!(scribe.take_reports().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_proof_that_is_called_off_is_tried_again_after_a_pause() {
    let pool = Pool::builder(CallsOff(AtomicUsize::new(3)))
        .build()
        .unwrap();
    pool.breaker().trip();

    pool.breaker().probe();
    settle().await;
    let at_once = pool.manager().0.load(Ordering::Relaxed);
    advance(60 * SECOND).await;

    assert!(at_once >= 2, "{at_once} of 3 are left");
    assert_eq!(pool.status().open_failed, 0);
    assert!(pool.acquire().await.is_ok());
}
