//! Faults during an open.

use std::time::Duration;

use cenote::config::OnOpenError;
use cenote::error::Phase;
use cenote::scope::BindError;
use cenote::{AcquireError, Health};
use cenote_sqlx::{Class, pool_error};
use cenote_testkit::{Then, Way};
use tokio::time::sleep;

use super::clock::{by, eventually};
use super::{ACQUIRE, Db, MAX_SIZE, OPEN, Trial, back_off, each};

/// Returns the phase of a timeout.
fn phase(error: &sqlx::Error) -> Option<Phase> {
    match pool_error(error) {
        Some(BindError::Acquire(AcquireError::TimedOut(seen))) => Some(seen.phase()),
        _ => None,
    }
}

#[tokio::test]
async fn a_refused_connection_is_an_error_at_once() {
    let trial = Trial::new("refused").await;
    trial.proxy.refuse().await;

    let error = by(Duration::from_millis(100), trial.db.acquire()).await;

    let error = error.unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
    assert_eq!(Db::classify(&error), Class::Refused);
    trial.proxy.heal().unwrap();
    trial.assert_recovered(1, back_off(Duration::ZERO)).await;
}

#[tokio::test]
async fn a_waiter_for_a_server_that_is_down_is_served_within_one_back_off() {
    let retry = |builder: cenote_sqlx::Builder<super::DB>| {
        builder
            .on_open_error(OnOpenError::Retry)
            .acquire_timeout(Duration::from_secs(20))
    };
    let trial = Trial::with("away", retry).await;
    let down = Duration::from_millis(400);
    trial.proxy.refuse().await;
    let heal = async {
        sleep(down).await;
        assert!(matches!(trial.db.pool().health(), Health::Down { .. }));
        trial.proxy.heal().unwrap();
        trial.first_success(2, back_off(down)).await;
    };

    let (waited, ()) = tokio::join!(trial.write(1), heal);

    waited.unwrap();
    assert!(trial.db.pool().health().is_ready());
    assert!(
        trial.db.pool().status().open_failed > 2,
        "too few opens failed for a test"
    );
    trial.assert_recovered(3, Duration::ZERO).await;
}

#[tokio::test]
async fn a_timeout_names_the_cause_of_failed_opens() {
    let retry =
        |builder: cenote_sqlx::Builder<super::DB>| builder.on_open_error(OnOpenError::Retry);
    let trial = Trial::with("why", retry).await;
    trial.proxy.refuse().await;

    let error = trial.acquire().await.unwrap_err();

    assert_eq!(phase(&error), Some(Phase::Opening), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
    trial.proxy.heal().unwrap();
    trial.assert_recovered(1, back_off(ACQUIRE)).await;
}

#[tokio::test]
async fn an_acquire_from_a_silent_server_ends_at_its_deadline() {
    let trial = Trial::with("hole", |builder| builder.open_timeout(2 * ACQUIRE)).await;
    trial.proxy.black_hole();

    let errors = [trial.acquire(), trial.acquire(), trial.acquire()];
    let [one, two, three] = errors;
    let (one, two, three) = tokio::join!(one, two, three);

    for error in [one, two, three] {
        let error = error.unwrap_err();
        assert_eq!(phase(&error), Some(Phase::Opening), "{error}");
        assert!(error.to_string().contains("`open_timeout`"), "{error}");
    }
    trial.proxy.heal().unwrap();
    // One more connection can be opened beside those that hang.
    trial.assert_recovered(1, Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_pool_full_of_hanging_opens_recovers_after_the_open_timeout() {
    let trial = Trial::with("pit", |builder| builder.max_opening(MAX_SIZE)).await;
    trial.proxy.black_hole();
    let waiting = async || trial.acquire().await.map(drop);

    let all = tokio::join!(waiting(), waiting(), waiting(), waiting());

    for error in [all.0, all.1, all.2, all.3] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("opening took longer than"), "{error}");
    }
    trial.proxy.heal().unwrap();
    trial.assert_recovered(1, OPEN).await;
}

#[tokio::test]
async fn a_handshake_that_stalls_ends_after_the_open_timeout() {
    each(
        [("stalls_up", Way::ToServer), ("stalls_down", Way::ToClient)],
        async |(name, way)| {
            let trial = Trial::new(name).await;
            trial.proxy.after(way, 20, Then::Stall);

            let error = trial.acquire().await.unwrap_err();

            let text = error.to_string();
            assert!(text.contains("opening took longer than 800"), "{error}");
            trial.proxy.heal().unwrap();
            trial.assert_recovered(1, back_off(Duration::ZERO)).await;
        },
    )
    .await;
}

#[tokio::test]
async fn a_handshake_that_is_cut_is_an_error_at_once() {
    let ends = [("cut_reset", Then::Reset), ("cut_close", Then::Close)];
    each(ends, async |(name, then)| {
        let trial = Trial::new(name).await;
        trial.proxy.after(Way::ToClient, 20, then);

        let error = by(Duration::from_millis(200), trial.db.acquire()).await;

        let error = error.unwrap_err().to_string();
        let causes = [
            "reset by peer",
            "EOF",
            "end of file",
            "closed",
            "Broken pipe",
        ];
        assert!(causes.iter().any(|cause| error.contains(cause)), "{error}");
        trial.proxy.heal().unwrap();
        trial.assert_recovered(1, back_off(Duration::ZERO)).await;
    })
    .await;
}

#[tokio::test]
async fn a_slow_handshake_succeeds() {
    let trial = Trial::new("slow").await;
    trial.proxy.slow_start(500, Duration::from_millis(30));

    let lease = trial.acquire().await.unwrap();

    drop(lease);
    trial.proxy.heal().unwrap();
    trial.assert_recovered(1, Duration::ZERO).await;
}

#[tokio::test]
async fn the_open_of_a_caller_that_gave_up_serves_the_next_caller() {
    let trial = Trial::new("late").await;
    trial.proxy.stall(Way::Both);

    let given_up = tokio::time::timeout(Duration::from_millis(100), trial.db.acquire()).await;
    assert!(given_up.is_err());
    trial.proxy.heal().unwrap();

    let pool = trial.db.pool();
    eventually("the connection is opened", async || pool.status().idle == 1).await;
    assert_eq!(pool.status().open_failed, 0);
    trial.assert_recovered(1, Duration::ZERO).await;
}
