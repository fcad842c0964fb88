//! Faults during a statement.

use std::time::Duration;

use cenote_sqlx::Class;
use cenote_testkit::{Then, Way};
use tokio::time::timeout;

use super::clock::by;
use super::{Db, MAX_SIZE, PATIENCE, STEP, Trial, back_off, each};

/// Runs a statement with a time limit on every connection at the same time. Returns how many ran
/// out of time.
async fn all_given_up(trial: &Trial) -> usize {
    let statement = || timeout(PATIENCE, sqlx::query("SELECT 1").execute(&trial.db));
    let all = tokio::join!(statement(), statement(), statement(), statement());
    let all = [all.0, all.1, all.2, all.3];
    all.into_iter().filter(Result::is_err).count()
}

#[tokio::test]
async fn latency_closes_no_connection() {
    let trial = Trial::new("latency").await;
    trial.proxy.delay(Way::Both, Duration::from_millis(15));

    for id in 1..4 {
        trial.write(id).await.unwrap();
    }

    assert_eq!(trial.db.pool().status().closes.total(), 0);
    trial.proxy.heal().unwrap();
    trial.assert_recovered(10, Duration::ZERO).await;
}

#[tokio::test]
async fn while_statements_stall_an_acquire_keeps_its_deadline() {
    each(
        [
            ("stall", Way::Both),
            ("stall_up", Way::ToServer),
            ("stall_down", Way::ToClient),
        ],
        async |(name, way)| {
            let trial = Trial::new(name).await;
            drop(trial.all().await);
            trial.proxy.stall(way);

            assert_eq!(all_given_up(&trial).await, MAX_SIZE);
            let error = trial.acquire().await.unwrap_err();

            assert_eq!(Db::classify(&error), Class::Refused, "{error}");
            let text = error.to_string();
            assert!(
                ["opening", "cleaning", "closing"]
                    .iter()
                    .any(|cause| text.contains(cause)),
                "{error}"
            );
            trial.proxy.heal().unwrap();
            trial.assert_recovered(1, back_off(2 * STEP)).await;
        },
    )
    .await;
}

#[tokio::test]
async fn connections_that_do_not_answer_are_closed_after_one_clean_timeout() {
    // The close timeout is long, so that the test fails if a close waits for an answer.
    let customize =
        |builder: cenote_sqlx::Builder<super::DB>| builder.close_timeout(Duration::from_secs(20));
    let trial = Trial::with("deaf", customize).await;
    drop(trial.all().await);
    trial.proxy.lose(Way::ToClient);
    assert_eq!(all_given_up(&trial).await, MAX_SIZE);

    trial.proxy.heal().unwrap();

    trial.assert_recovered(1, STEP).await;
}

#[tokio::test]
async fn statements_that_are_lost_on_the_way_do_not_stop_the_pool() {
    let trial = Trial::new("nothing").await;
    drop(trial.all().await);
    trial.proxy.lose(Way::ToServer);
    assert_eq!(all_given_up(&trial).await, MAX_SIZE);
    trial.proxy.heal().unwrap();
    trial.first_success(1, 2 * STEP).await;

    // The server still has the sessions, because their ends were lost too.
    trial.proxy.reset();

    trial.assert_recovered(3, Duration::ZERO).await;
}

#[tokio::test]
async fn a_connection_that_is_cut_during_a_statement_fails_it_at_once() {
    each(
        [
            ("reset_up", Way::ToServer, Then::Reset),
            ("reset_down", Way::ToClient, Then::Reset),
            ("close_up", Way::ToServer, Then::Close),
            ("close_down", Way::ToClient, Then::Close),
        ],
        async |(name, way, then)| {
            let trial = Trial::new(name).await;
            let mut lease = trial.acquire().await.unwrap();
            trial.proxy.after(way, 3, then);

            let cut = sqlx::query("SELECT 1").execute(&mut lease);
            let error = by(Duration::from_millis(200), cut).await.unwrap_err();

            assert_eq!(Db::classify(&error), Class::Broken, "{error}");
            drop(lease);
            trial.proxy.heal().unwrap();
            trial.assert_recovered(1, Duration::ZERO).await;
            let closes = trial.db.pool().status().closes;
            assert_eq!(closes.by(cenote::CloseReason::Broken), 1, "{closes:?}");
        },
    )
    .await;
}

#[tokio::test]
async fn idle_connections_that_are_cut_fail_at_most_one_statement_each() {
    each(
        [
            ("idle_cut", Duration::from_secs(5), MAX_SIZE),
            ("idle_checked", Duration::ZERO, 0),
        ],
        async |(name, check, failures)| {
            let trial = Trial::with(name, |builder| builder.check_after_idle(check)).await;
            drop(trial.all().await);
            trial.proxy.reset();

            let mut failed = 0;
            for _ in 0..2 * MAX_SIZE {
                let run = sqlx::query("SELECT 1").execute(&trial.db).await;
                failed += usize::from(run.is_err());
            }

            assert!(failed <= failures, "{failed} failed");
            trial.assert_recovered(1, Duration::ZERO).await;
        },
    )
    .await;
}

#[tokio::test]
async fn a_result_that_is_cut_halfway_is_an_error_and_never_a_short_result() {
    each(
        [("half_reset", Then::Reset), ("half_close", Then::Close)],
        async |(name, then)| {
            let trial = Trial::new(name).await;
            let mut lease = trial.acquire().await.unwrap();
            trial.proxy.after(Way::ToClient, 20_000, then);

            let many = sqlx::query(super::world::MANY).fetch_all(&mut lease);
            let error = many.await.unwrap_err();

            assert_eq!(Db::classify(&error), Class::Broken, "{error}");
            drop(lease);
            trial.proxy.heal().unwrap();
            trial.assert_recovered(1, Duration::ZERO).await;
        },
    )
    .await;
}
