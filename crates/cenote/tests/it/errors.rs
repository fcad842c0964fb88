//! Errors: the exact text of each, its cause, and whether it is retryable.

use std::error::Error;
use std::time::Duration;

use cenote::config::{Nested, WarmUp};
use cenote::status::RefusalReason;
use cenote::{AcquireError, ConfigError, OpenError, Pool, WarmError};
use cenote_testkit::clock::settle;
use cenote_testkit::{Call, Fault, Gate, GatedPool, Rig};

use crate::support::text::chain;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_failed_open_says_so_and_has_the_managers_error_as_its_source() {
    let rig = Rig::new(|pool| pool.name("orders").max_size(1));
    rig.backend.once(Call::Open, Gate::Fail);

    let error = rig.pool.acquire().await.unwrap_err();

    assert!(matches!(
        error,
        AcquireError::Open {
            error: OpenError::Failed(_),
            ..
        }
    ));
    assert_eq!(
        chain(&error),
        [
            "pool `orders`: opening failed: the backend refused Open",
            "the backend refused Open"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_open_that_hangs_or_panics_says_so_and_has_no_source() {
    let rig = Rig::new(|pool| {
        let pool = pool.name("orders").max_size(1);
        pool.open_timeout(Duration::from_millis(250))
    });
    rig.backend.once(Call::Open, Gate::Hang);
    rig.backend.once(Call::Open, Gate::Panic);

    let hung = rig.pool.acquire().await.unwrap_err();
    let panicked = rig.pool.acquire().await.unwrap_err();

    assert_eq!(
        chain(&hung),
        ["pool `orders`: opening took longer than 250.0ms: see `open_timeout`"]
    );
    assert_eq!(
        chain(&panicked),
        ["pool `orders`: opening panicked: the backend panicked in Open"]
    );
}

#[tokio::test(start_paused = true)]
async fn closed_rejected_and_unavailable_say_which_pool_and_what_to_do() {
    let rig = Rig::new(|pool| pool.name("orders").max_size(1).max_waiters(1));
    let held = rig.acquire().await;
    let _waiting = rig.wait();

    let rejected = rig.pool.acquire().await.unwrap_err();
    rig.pool.breaker().trip();
    let unavailable = rig.pool.acquire().await.unwrap_err();
    rig.pool.close();
    let closed = rig.pool.acquire().await.unwrap_err();

    assert_eq!(
        chain(&rejected),
        ["pool `orders` has 1 waiting already: shed load or raise `max_waiters`"]
    );
    assert!(
        unavailable
            .to_string()
            .starts_with("pool `orders` is unavailable: its breaker tripped ")
    );
    assert_eq!(chain(&closed), ["pool `orders` is closed"]);
    for error in [rejected, unavailable, closed] {
        assert_eq!(error.pool(), "orders");
    }
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn an_error_that_may_go_away_is_retryable() {
    let rig = Rig::new(|pool| pool.max_size(1).max_waiters(1));
    rig.backend.once(Call::Open, Gate::Fail);

    let open = rig.pool.acquire().await.unwrap_err();
    let held = rig.acquire().await;
    let timed_out = rig.pool.acquire_within(SECOND).await.unwrap_err();
    let waiting = rig.wait();
    let rejected = rig.pool.acquire().await.unwrap_err();
    rig.pool.breaker().trip();
    let unavailable = rig.pool.acquire().await.unwrap_err();

    assert!(matches!(open, AcquireError::Open { .. }));
    assert!(matches!(timed_out, AcquireError::TimedOut(_)));
    assert!(matches!(
        rejected,
        AcquireError::Rejected { waiting: 1, .. }
    ));
    assert!(matches!(unavailable, AcquireError::Unavailable(_)));
    for error in [open, timed_out, rejected, unavailable] {
        assert!(error.is_retryable(), "{error}");
    }
    drop((held, waiting));
}

#[tokio::test(start_paused = true)]
async fn an_error_that_stays_is_not_retryable() {
    let rig = Rig::new(|pool| pool.max_size(2).nested(Nested::Deny));
    let held = rig.acquire().await;

    let nested = rig.pool.acquire().await.unwrap_err();
    rig.pool.close();
    let closed = rig.pool.acquire().await.unwrap_err();

    assert!(matches!(nested, AcquireError::Nested { .. }));
    assert!(matches!(closed, AcquireError::Closed { .. }));
    for error in [nested, closed] {
        assert!(!error.is_retryable(), "{error}");
        assert!(error.source().is_none());
    }
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn no_caller_is_rejected_while_there_is_room_to_open() {
    let rig = Rig::new(|pool| pool.max_size(3).max_waiters(0));
    let tasks = [(); 3].map(|()| {
        let pool = rig.pool.clone();
        tokio::spawn(async move { pool.acquire().await })
    });

    let mut leases = Vec::new();
    for task in tasks {
        leases.push(task.await.unwrap().expect("there is room"));
    }

    let pool = rig.pool.clone();
    let fourth = tokio::spawn(async move { pool.acquire().await.err() });
    assert!(matches!(
        fourth.await.unwrap(),
        Some(AcquireError::Rejected { waiting: 0, .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn a_rejected_acquire_leaves_no_trace_but_a_count() {
    let rig = Rig::new(|pool| pool.max_size(1).max_waiters(1));
    let held = rig.acquire().await;
    let mut waiting = rig.wait();
    let before = rig.pool.status();

    let rejected = rig.pool.acquire().await;

    assert!(rejected.is_err());
    let mut after = rig.pool.status();
    assert_eq!(after.refusals.by(RefusalReason::Rejected), 1);
    after.refusals = before.refusals.clone();
    assert_eq!(after, before);
    drop(held);
    assert!(waiting.is_served());
}

#[tokio::test(start_paused = true)]
async fn a_failed_warm_up_says_so_and_has_the_managers_error_as_its_source() {
    let rig = Rig::new(|pool| pool.max_size(2).min_size(1));
    rig.backend.always(Call::Open, Gate::Fail);

    let error = rig.pool.warm().await.unwrap_err();

    assert!(matches!(error, WarmError::Open(OpenError::Failed(_))));
    assert_eq!(
        chain(&error),
        [
            "the pool could not be warmed up: opening failed: the backend refused Open",
            "the backend refused Open"
        ]
    );
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_warm_up_at_best_effort_is_no_error() {
    let rig = Rig::new(|pool| {
        let pool = pool.max_size(2).min_size(1);
        pool.warm_up(WarmUp::BestEffort)
    });
    rig.backend.always(Call::Open, Gate::Fail);

    let warmed = rig.pool.warm().await;

    assert!(warmed.is_ok());
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_warm_up_of_a_pool_that_closes_meanwhile_says_so() {
    let rig = Rig::new(|pool| pool.max_size(2).min_size(1));
    rig.backend.always(Call::Open, Gate::Slow(SECOND));
    let pool = rig.pool.clone();
    let warming = tokio::spawn(async move { pool.warm().await });
    settle().await;

    rig.pool.close();

    let error = warming.await.unwrap().unwrap_err();
    assert!(matches!(error, WarmError::Closed));
    assert_eq!(
        chain(&error),
        ["the pool was closed while it was warmed up"]
    );
}

#[tokio::test(start_paused = true)]
async fn errors_go_through_the_question_mark_into_a_boxed_error() {
    async fn use_it(pool: &GatedPool) -> Result<u64, Box<dyn Error + Send + Sync>> {
        pool.warm().await?;
        pool.resize(1)?;
        Ok(pool.acquire().await?.serial)
    }
    let rig = Rig::with_max_size(2);
    assert_eq!(use_it(&rig.pool).await.unwrap(), 1);
    rig.pool.close();

    let error = use_it(&rig.pool).await.unwrap_err();

    assert!(error.is::<WarmError<Fault>>(), "{error}");
}

#[test]
fn errors_can_be_sent_anywhere() {
    fn assert_error<T: Error + Send + Sync + 'static>() {}

    assert_error::<AcquireError<Fault>>();
    assert_error::<OpenError<Fault>>();
    assert_error::<WarmError<Fault>>();
    assert_error::<ConfigError>();
}

#[tokio::test(start_paused = true)]
async fn a_closure_that_fails_with_a_text_or_an_error_keeps_it_in_the_chain() {
    let text = Pool::from_fn(async || Err::<(), _>("no route"));
    let text = text.name("text").build().unwrap();
    let other = Pool::from_fn(async || Err::<(), _>(Fault(Call::Open)));
    let other = other.name("other").build().unwrap();

    let text = text.acquire().await.unwrap_err();
    let other = other.acquire().await.unwrap_err();

    assert_eq!(
        chain(&text),
        ["pool `text`: opening failed: no route", "no route"]
    );
    assert_eq!(
        chain(&other),
        [
            "pool `other`: opening failed: the backend refused Open",
            "the backend refused Open"
        ]
    );
}
