//! The timeout error: which leases are held, since when and where; what the caller waited for; and
//! which setting to change.

use std::error::Error;
use std::time::Duration;

use cenote::config::OnOpenError;
use cenote::error::{Phase, TimedOut};
use cenote::{AcquireError, Lease, OpenError};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Fault, Gate, GatedManager, GatedPool, Rig};

const SECOND: Duration = Duration::from_secs(1);

/// Times out in a task of its own, so that it holds none of the leases.
async fn time_out(pool: &GatedPool, limit: Duration) -> TimedOut<Fault> {
    let pool = pool.clone();
    let waiter = tokio::spawn(async move { pool.acquire_within(limit).await });
    match waiter.await.expect("it does not panic") {
        Err(AcquireError::TimedOut(timed_out)) => timed_out,
        other => panic!("it was to run out of time: {other:?}"),
    }
}

/// Acquires, and returns the lease and its line.
async fn report(pool: &GatedPool) -> (Lease<GatedManager>, u32) {
    (pool.acquire().await.expect("one is free"), line!())
}

/// Acquires at another line.
async fn invoice(pool: &GatedPool) -> (Lease<GatedManager>, u32) {
    (pool.acquire().await.expect("one is free"), line!())
}

#[tokio::test(start_paused = true)]
async fn a_timeout_says_in_one_line_who_holds_what_since_when_and_where() {
    let rig = Rig::new(|pool| pool.name("orders").max_size(3));
    let (first, report_line) = report(&rig.pool).await;
    Lease::label(&first, "nightly report");
    advance(2 * SECOND).await;
    let (second, invoice_line) = invoice(&rig.pool).await;
    advance(SECOND).await;
    let (third, _) = report(&rig.pool).await;

    let timed_out = time_out(&rig.pool, 5 * SECOND).await;

    let text = timed_out.to_string();
    let file = file!();
    assert_eq!(
        text,
        format!(
            "pool `orders`: no resource within 5.0s: 3 of 3 in use, 0 opening, 1 waiting; \
             held: 1 at {file}:{report_line} for up to 8.0s (nightly report), \
             1 at {file}:{invoice_line} for up to 6.0s, \
             1 at {file}:{report_line} for up to 5.0s; shorten leases or raise `max_size`"
        )
    );
    assert_eq!(
        AcquireError::TimedOut(timed_out).to_string(),
        text,
        "the enum says the same"
    );
    drop((first, second, third));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_timeout_names_three_places_and_counts_the_rest() {
    let rig = Rig::with_max_size(5);
    let leases = [
        rig.pool.acquire().await.unwrap(),
        rig.pool.acquire().await.unwrap(),
        rig.pool.acquire().await.unwrap(),
        rig.pool.acquire().await.unwrap(),
        rig.pool.acquire().await.unwrap(),
    ];

    let timed_out = time_out(&rig.pool, SECOND).await;

    let text = timed_out.to_string();
    assert_eq!(timed_out.holders().len(), 5, "all are in `holders`");
    assert_eq!(text.matches(file!()).count(), 3, "{text}");
    assert!(text.contains(" and 2 more places; "), "{text}");
    assert_eq!(text.lines().count(), 1);
    drop(leases);
}

#[tokio::test(start_paused = true)]
async fn holders_are_grouped_by_place_and_label_longest_first() {
    let rig = Rig::with_max_size(4);
    let (oldest, invoice_line) = invoice(&rig.pool).await;
    advance(SECOND).await;
    let (first, report_line) = report(&rig.pool).await;
    advance(SECOND).await;
    let (second, _) = report(&rig.pool).await;
    let (third, _) = report(&rig.pool).await;
    Lease::label(&first, "same");
    Lease::label(&second, "same");
    Lease::label(&third, "other");

    let timed_out = time_out(&rig.pool, SECOND).await;

    let groups: Vec<_> = timed_out
        .holders()
        .iter()
        .map(|group| {
            let label = group.label.as_deref();
            (
                group.site.line(),
                group.count,
                group.longest.as_secs(),
                label,
            )
        })
        .collect();
    assert_eq!(
        groups,
        [
            (invoice_line, 1, 3, None),
            (report_line, 2, 2, Some("same")),
            (report_line, 1, 1, Some("other"))
        ]
    );
    drop((oldest, first, second, third));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_carries_the_pool_as_it_was() {
    let rig = Rig::new(|pool| pool.name("orders").max_size(1));
    let held = rig.acquire().await;
    let pool = rig.pool.clone();
    let ahead = tokio::spawn(async move { pool.acquire().await });
    settle().await;

    let timed_out = time_out(&rig.pool, 2 * SECOND).await;
    drop(held);
    drop(ahead.await.unwrap());

    assert_eq!(timed_out.pool(), "orders");
    assert_eq!(timed_out.waited().as_secs(), 2);
    let status = timed_out.status();
    assert_eq!(
        (
            status.max_size,
            status.in_use,
            status.waiting,
            status.timed_out
        ),
        (1, 1, 2, 1)
    );
    assert_eq!(status.oldest_wait.map(|wait| wait.as_secs()), Some(2));
    assert!(!timed_out.is_nested());
    assert!(timed_out.last_open_error().is_none());
}

#[track_caller]
fn assert_phase(timed_out: &TimedOut<Fault>, phase: Phase, knob: &str) {
    let text = timed_out.to_string();
    assert_eq!(timed_out.phase(), phase, "{text}");
    assert!(text.contains(knob), "`{knob}` is not in: {text}");
    assert_eq!(text.lines().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_phase_is_queued_when_all_are_out() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;

    let timed_out = time_out(&rig.pool, SECOND).await;

    assert_phase(
        &timed_out,
        Phase::Queued,
        "; shorten leases or raise `max_size`",
    );
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn the_phase_is_opening_when_an_open_is_slow() {
    let rig = Rig::with_max_size(2);
    let held = rig.acquire().await;
    rig.backend.always(Call::Open, Gate::Hang);

    let timed_out = time_out(&rig.pool, SECOND).await;

    assert_phase(
        &timed_out,
        Phase::Opening,
        "; opening is slow: see `open_timeout` and `max_opening`",
    );
    assert!(timed_out.to_string().contains("1 of 2 in use, 1 opening"));
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn the_phase_is_checking_when_a_check_is_slow() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    advance(10 * SECOND).await;
    rig.backend.always(Call::Check, Gate::Hang);

    let timed_out = time_out(&rig.pool, SECOND).await;

    assert_phase(
        &timed_out,
        Phase::Checking,
        "; checks are slow: see `check_timeout`",
    );
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn the_phase_is_cleaning_when_a_clean_is_slow() {
    let rig = Rig::with_max_size(1);
    let mut lease = rig.acquire().await;
    rig.backend.always(Call::Clean, Gate::Hang);
    lease.dirty = true;
    drop(lease);

    let timed_out = time_out(&rig.pool, SECOND).await;

    assert_phase(&timed_out, Phase::Cleaning, "see `clean_timeout`");
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_close_is_named_by_its_own_knob() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;
    rig.backend.always(Call::Close, Gate::Hang);
    Lease::discard(lease);

    let timed_out = time_out(&rig.pool, SECOND).await;

    let text = timed_out.to_string();
    assert!(text.contains("`close_timeout`"), "which knob? {text}");
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn the_phase_is_suspended_when_the_pool_is() {
    let rig = Rig::with_max_size(1);
    rig.pool.suspend();

    let timed_out = time_out(&rig.pool, SECOND).await;

    assert_phase(
        &timed_out,
        Phase::Suspended,
        "; the pool is suspended: call `resume`",
    );
    rig.pool.resume();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn the_phase_is_recovering_when_the_probes_are_out() {
    let rig = Rig::with_max_size(2);
    rig.pool.breaker().probe();
    let probe = rig.acquire().await;

    let timed_out = time_out(&rig.pool, SECOND).await;

    assert_phase(
        &timed_out,
        Phase::Recovering,
        "; the breaker is recovering: see `probes`",
    );
    drop(probe);
    rig.pool.breaker().reset();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_timeout_while_opening_fails_has_the_last_open_error_as_its_source() {
    let rig = Rig::new(|pool| pool.max_size(1).on_open_error(OnOpenError::Retry));
    rig.backend.always(Call::Open, Gate::Fail);

    let timed_out = time_out(&rig.pool, 2 * SECOND).await;

    assert_eq!(timed_out.phase(), Phase::Opening);
    assert!(matches!(
        timed_out.last_open_error(),
        Some(OpenError::Failed(fault)) if **fault == Fault(Call::Open)
    ));
    let error = AcquireError::TimedOut(timed_out);
    let text = error.to_string();
    assert!(
        text.ends_with("; opening failed: the backend refused Open"),
        "{text}"
    );
    let root = error.source().unwrap();
    assert_eq!(root.downcast_ref(), Some(&Fault(Call::Open)));
    assert!(root.source().is_none());
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn an_open_that_succeeded_since_clears_the_last_open_error() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Open, Gate::Fail);
    assert!(rig.pool.acquire().await.is_err());
    let held = rig.acquire().await;

    let timed_out = time_out(&rig.pool, SECOND).await;

    assert!(timed_out.last_open_error().is_none());
    assert!(AcquireError::TimedOut(timed_out).source().is_none());
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn the_phase_is_that_of_the_waiter_and_not_of_the_waiters_ahead_of_it() {
    let rig = Rig::with_max_size(2);
    let _held = rig.acquire().await;
    rig.backend.always(Call::Open, Gate::Hang);

    let (first, second) = tokio::join!(time_out(&rig.pool, SECOND), async {
        settle().await;
        time_out(&rig.pool, SECOND / 2).await
    });

    assert_eq!(first.phase(), Phase::Opening);
    assert_eq!(
        second.phase(),
        Phase::Queued,
        "one is on its way, for another"
    );
}
