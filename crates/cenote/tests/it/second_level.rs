//! A pool on the leases of another pool: its resources obey the rules of both.

use std::error::Error;
use std::time::Duration;

use cenote::breaker::{BreakerState, ConsecutiveFailures};
use cenote::config::Nested;
use cenote::{AcquireError, CloseReason, Lease, OpenError};
use cenote_testkit::clock::{advance, settle, timed};
use cenote_testkit::{Call, Gate, Rig};

use crate::support::two_levels::{assert_conserved, on};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn the_base_lists_the_lease_with_the_name_of_the_upper_pool() {
    let base = Rig::with_max_size(2);
    let (_, sessions) = on(&base.pool);
    let sessions = sessions.name("sessions").build().unwrap();
    drop(sessions.acquire().await.unwrap());

    let holders = base.pool.leases();

    assert_eq!(holders.len(), 1);
    assert_eq!(holders[0].label.as_deref(), Some("pool `sessions`"));
    assert!(holders[0].site.file().ends_with("second_level.rs"));
    assert_eq!(sessions.base().name(), base.pool.name());
    assert_conserved(&base.pool, sessions).await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_kept_is_neither_a_leak_nor_late() {
    let base = Rig::new(|pool| pool.leak_after(SECOND).upkeep_interval(SECOND));
    let (_, sessions) = on(&base.pool);
    let sessions = sessions.idle_timeout(None).max_lifetime(None);
    let sessions = sessions.leak_after(None).build().unwrap();
    let session = sessions.acquire().await.unwrap();
    advance(HOUR).await;

    drop(session);
    assert_conserved(&base.pool, sessions).await;

    assert_eq!(base.pool.status().leaked, 0);
    let events = format!("{:?}", base.recorder);
    assert!(!events.contains("late"), "{events}");
    let held = base.acquire().await;
    advance(HOUR).await;
    assert_eq!(base.pool.status().leaked, 1, "the next lease can leak");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn one_task_may_hold_a_session_and_acquire_from_a_base_that_denies_nesting() {
    let base = Rig::new(|pool| pool.max_size(3).nested(Nested::Deny));
    let (_, sessions) = on(&base.pool);
    let sessions = sessions.build().unwrap();
    let task = tokio::spawn({
        let (base, sessions) = (base.pool.clone(), sessions.clone());
        async move {
            let held = (sessions.acquire().await, sessions.acquire().await);
            assert!(held.0.is_ok() && held.1.is_ok());
            assert!(base.acquire().await.is_ok());
        }
    });

    task.await.unwrap();

    assert!(sessions.close_within(HOUR).await.is_empty());
    settle().await;
    assert_eq!(base.pool.status().in_use, 0);
}

#[tokio::test(start_paused = true)]
async fn leases_that_are_kept_are_no_circle() {
    let base = Rig::with_max_size(1);
    let (_, sessions) = on(&base.pool);
    let sessions = sessions.build().unwrap();
    let session = sessions.acquire().await.unwrap();

    let more = base.pool.acquire_within(5 * SECOND).await;

    let Err(AcquireError::TimedOut(seen)) = more else {
        panic!("the lease is kept");
    };
    assert!(!seen.to_string().contains("deadlock"), "{seen}");
    let events = format!("{:?}", base.recorder);
    assert!(!events.contains("nested"), "{events}");
    drop(session);
    assert_conserved(&base.pool, sessions).await;
}

/// What is done to the base, and how it recovers.
type Change = fn(&Rig);

const CHANGES: [(&str, Change); 3] = [
    ("invalidate", |base| base.pool.invalidate()),
    ("resize", |base| base.pool.resize(1).expect("1 is a size")),
    ("lifetime", |_| ()),
];

#[tokio::test(start_paused = true)]
async fn a_base_that_is_wanted_back_ends_the_resources_on_it() {
    for (name, change) in CHANGES {
        let base = Rig::new(|pool| pool.max_size(2).max_lifetime(100 * SECOND));
        let (_, sessions) = on(&base.pool);
        let sessions = sessions.idle_timeout(None).max_lifetime(None);
        let sessions = sessions.check_after_idle(None).build().unwrap();
        let (idle, held) = (sessions.acquire().await, sessions.acquire().await);
        drop(idle);
        settle().await;

        change(&base);
        settle().await;
        let at_once = sessions.status().closes.total();
        if name == "lifetime" {
            assert_eq!(at_once, 0);
            advance(200 * SECOND).await;
        } else {
            assert_eq!(at_once, 1, "{name}: the idle one goes at once");
        }
        drop(held);
        settle().await;
        let other = sessions.acquire().await.unwrap();

        let closes = sessions.status().closes;
        assert_eq!(closes.by(CloseReason::Broken), 0, "{name}: nothing broke");
        let expected = if name == "resize" { 1 } else { 2 };
        assert_eq!(closes.by(CloseReason::Refused), expected, "{name}");
        assert_eq!(base.pool.status().closes.total(), expected, "{name}");
        drop(other);
        assert_conserved(&base.pool, sessions).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_base_that_is_broken_breaks_the_resource_on_it() {
    for idle in [false, true] {
        let base = Rig::with_max_size(2);
        let (_, sessions) = on(&base.pool);
        let sessions = sessions.build().unwrap();
        let mut session = sessions.acquire().await.unwrap();
        let serial = session.base().serial;
        if idle {
            drop(session);
            base.backend.once(Call::IsBroken, Gate::Fail);
        } else {
            session.base().broken = true;
            drop(session);
        }
        settle().await;

        let mut session = sessions.acquire().await.unwrap();

        assert_eq!(sessions.status().closes.by(CloseReason::Broken), 1);
        if !idle {
            assert_ne!(session.base().serial, serial);
            assert_eq!(base.pool.status().closes.by(CloseReason::Broken), 1);
        }
        drop(session);
        assert_conserved(&base.pool, sessions).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_base_that_is_wanted_back_is_no_failure_for_the_breaker() {
    let base = Rig::with_max_size(4);
    let (_, sessions) = on(&base.pool);
    let sessions = sessions
        .breaker(ConsecutiveFailures::new(1))
        .build()
        .unwrap();
    let held = (sessions.acquire().await, sessions.acquire().await);
    drop(sessions.acquire().await);

    base.pool.invalidate();
    drop(held);
    settle().await;

    assert_eq!(sessions.breaker().state(), BreakerState::Active);
    assert_eq!(sessions.status().closes.by(CloseReason::Refused), 3);
    assert_conserved(&base.pool, sessions).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_on_a_probe_proves_that_the_base_is_back() {
    let base = Rig::new(|pool| pool.breaker(ConsecutiveFailures::new(1)).self_probe(false));
    let (_, sessions) = on(&base.pool);
    let sessions = sessions.build().unwrap();
    base.pool.breaker().trip();
    assert!(sessions.acquire().await.is_err());
    base.pool.breaker().probe();

    let session = sessions.acquire().await.unwrap();

    assert_eq!(base.pool.breaker().state(), BreakerState::Active);
    drop(session);
    assert_conserved(&base.pool, sessions).await;
}

#[tokio::test(start_paused = true)]
async fn a_base_lent_max_uses_times_is_closed_when_it_comes_back_and_not_before() {
    let base = Rig::new(|pool| pool.max_size(1).max_uses(1));
    let (_, sessions) = on(&base.pool);
    let sessions = sessions.max_uses(3).build().unwrap();
    for _ in 0..3 {
        assert_eq!(sessions.acquire().await.unwrap().base().serial, 1);
    }

    let serial = sessions.acquire().await.unwrap().base().serial;

    assert_eq!(serial, 2, "the session was used three times");
    assert_eq!(sessions.status().closes.by(CloseReason::Uses), 1);
    assert_eq!(base.pool.status().closes.by(CloseReason::Uses), 1);
    assert_conserved(&base.pool, sessions).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_closed_gives_its_base_back_for_the_base_to_clean() {
    let base = Rig::with_max_size(1);
    let (_, sessions) = on(&base.pool);
    let sessions = sessions.build().unwrap();
    let mut session = sessions.acquire().await.unwrap();
    session.base().dirty = true;
    Lease::discard(session);
    settle().await;

    let session = sessions.acquire().await.unwrap();

    assert_eq!(base.pool.status().closes.total(), 0);
    assert_eq!(base.backend.calls(Call::Clean), 1);
    drop(session);
    assert_conserved(&base.pool, sessions).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_open_or_close_takes_the_base_along() {
    for (call, gate) in [
        (Call::Open, Gate::Fail),
        (Call::Open, Gate::Hang),
        (Call::Open, Gate::Panic),
        (Call::Close, Gate::Fail),
        (Call::Close, Gate::Hang),
        (Call::Close, Gate::Panic),
    ] {
        let base = Rig::with_max_size(1);
        let (backend, sessions) = on(&base.pool);
        let sessions = sessions.build().unwrap();
        backend.once(call, gate);

        match sessions.acquire_within(HOUR).await {
            Ok(session) => Lease::discard(session),
            Err(error) => assert!(matches!(error, AcquireError::Open { .. }), "{error}"),
        }
        advance(60 * SECOND).await;

        let case = format!("{call:?} {gate:?}");
        let closes = base.pool.status().closes;
        assert_eq!(closes.by(CloseReason::Discarded), 1, "{case}");
        assert_conserved(&base.pool, sessions).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_leaves_its_pool_takes_its_base_along() {
    let base = Rig::with_max_size(1);
    let (_, sessions) = on(&base.pool);
    let sessions = sessions.build().unwrap();

    let session = Lease::detach(sessions.acquire().await.unwrap());

    assert_eq!(base.pool.status().in_use, 1);
    drop(session);
    settle().await;
    assert_eq!(base.pool.status().closes.by(CloseReason::Discarded), 1);
    assert_conserved(&base.pool, sessions).await;
}

#[tokio::test(start_paused = true)]
async fn the_error_of_an_open_says_who_holds_the_base_and_says_it_once() {
    let base = Rig::new(|pool| pool.max_size(1).name("connections").acquire_timeout(None));
    let (_, sessions) = on(&base.pool);
    let sessions = sessions.name("sessions").build().unwrap();
    let held = base.acquire().await;
    Lease::label(&held, "nightly report");

    let (acquired, took) = timed(sessions.acquire()).await;

    let error = acquired.unwrap_err();
    assert!(took < 5 * SECOND, "{took:?} is not before its own timeout");
    let text = error.to_string();
    assert!(text.starts_with("pool `sessions`: opening failed: pool `connections`: no"));
    assert_eq!(text.matches("nightly report").count(), 1, "{text}");
    assert_eq!(text.matches("second_level.rs").count(), 1, "{text}");
    let mut source = error.source();
    let AcquireError::Open {
        error: OpenError::Failed(cause),
        ..
    } = &error
    else {
        panic!("{error}");
    };
    let below = cause.as_error().downcast_ref();
    let Some(AcquireError::<cenote_testkit::Fault>::TimedOut(seen)) = below else {
        panic!("{error:?}");
    };
    assert_eq!(seen.holders()[0].label.as_deref(), Some("nightly report"));
    assert!(source.is_some());
    while let Some(below) = source {
        source = below.source();
        let repeated = source.is_some_and(|next| next.to_string() == below.to_string());
        assert!(!repeated, "{below}");
    }
    drop(held);
    assert_conserved(&base.pool, sessions).await;
}

#[tokio::test(start_paused = true)]
async fn an_open_leaves_the_queue_of_the_base_when_its_pool_is_closed() {
    let base = Rig::with_max_size(1);
    let (_, sessions) = on(&base.pool);
    let sessions = sessions.build().unwrap();
    let held = base.acquire().await;
    let waiting = tokio::spawn({
        let sessions = sessions.clone();
        async move { sessions.acquire().await.map(drop) }
    });
    settle().await;
    assert_eq!(base.pool.status().waiting, 1);

    let (left, took) = timed(sessions.close_within(HOUR)).await;

    assert!(left.is_empty() && took < SECOND, "{left} after {took:?}");
    assert!(matches!(
        waiting.await.unwrap(),
        Err(AcquireError::Closed { .. })
    ));
    assert_eq!(base.pool.status().waiting, 0);
    drop(held);
    assert_conserved(&base.pool, sessions).await;
}

#[tokio::test(start_paused = true)]
async fn closing_the_base_first_ends_the_upper_resources() {
    let base = Rig::with_max_size(3);
    let (backend, sessions) = on(&base.pool);
    let sessions = sessions.build().unwrap();
    let held = sessions.acquire().await.unwrap();
    drop((
        sessions.acquire().await.unwrap(),
        sessions.acquire().await.unwrap(),
    ));
    let closing = tokio::spawn({
        let base = base.pool.clone();
        async move { base.close_within(HOUR).await }
    });
    settle().await;
    assert_eq!(
        (backend.alive(), base.backend.alive()),
        (1, 1),
        "idle ones go"
    );

    drop(held);

    assert!(closing.await.unwrap().is_empty());
    assert_eq!((backend.alive(), base.backend.alive()), (0, 0));
    let error = sessions.acquire().await.unwrap_err();
    assert!(error.to_string().ends_with("is closed"), "{error}");
    assert!(sessions.close_within(HOUR).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_upper_pool_keeps_its_base_open() {
    let base = Rig::with_max_size(1);
    let (_, sessions) = on(&base.pool);
    let sessions = sessions.build().unwrap();
    let backend = base.backend.clone();
    let weak = base.pool.downgrade();
    drop(base);
    assert!(sessions.acquire().await.is_ok());
    settle().await;
    assert!(weak.upgrade().is_some());

    drop(sessions);
    settle().await;

    assert!(weak.upgrade().is_none());
    assert_eq!(backend.alive(), 0);
}
