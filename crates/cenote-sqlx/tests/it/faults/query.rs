//! Faults while a statement runs.

use std::time::Duration;

use cenote_sqlx::Class;
use cenote_testkit::{Then, Way};
use tokio::time::timeout;

use super::clock::by;
use super::{Db, MAX_SIZE, PATIENCE, STEP, Trial, back_off, each};

/// A statement on every connection at the same time, each given up by its user after a while. How many were.
async fn all_given_up(trial: &Trial) -> usize {
    let statement = || timeout(PATIENCE, sqlx::query("SELECT 1").execute(&trial.db));
    let all = tokio::join!(statement(), statement(), statement(), statement());
    let all = [all.0, all.1, all.2, all.3];
    all.into_iter().filter(Result::is_err).count()
}

#[tokio::test]
async fn latency_is_waited_for_and_breaks_nothing() {
    let trial = Trial::new("latency").await;
    trial.proxy.delay(Way::Both, Duration::from_millis(15));

    for id in 1..4 {
        trial.write(id).await.unwrap();
    }

    assert_eq!(trial.db.pool().status().closed.total(), 0);
    trial.proxy.heal().unwrap();
    trial.assert_recovered(10, Duration::ZERO).await;
}

#[tokio::test]
async fn statements_that_stall_can_be_given_up_and_an_acquire_meanwhile_keeps_its_deadline() {
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
async fn connections_that_have_gone_deaf_are_given_up_after_one_clean() {
    // A close has all the time that it wants: it must not want any.
    let dress =
        |builder: cenote_sqlx::Builder<super::DB>| builder.close_timeout(Duration::from_secs(20));
    let trial = Trial::with("deaf", dress).await;
    drop(trial.all().await);
    trial.proxy.lose(Way::ToClient);
    assert_eq!(all_given_up(&trial).await, MAX_SIZE);

    trial.proxy.heal().unwrap();

    trial.assert_recovered(1, STEP).await;
}

#[tokio::test]
async fn what_was_sent_into_nothing_is_given_up_and_the_pool_serves_on() {
    let trial = Trial::new("nothing").await;
    drop(trial.all().await);
    trial.proxy.lose(Way::ToServer);
    assert_eq!(all_given_up(&trial).await, MAX_SIZE);
    trial.proxy.heal().unwrap();
    trial.first_success(1, 2 * STEP).await;

    // The server cannot know that they are gone before somebody tells it.
    trial.proxy.reset();

    trial.assert_recovered(3, Duration::ZERO).await;
}

#[tokio::test]
async fn a_connection_that_is_cut_in_a_statement_breaks_with_an_error_at_once() {
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
            let closed = trial.db.pool().status().closed;
            assert_eq!(closed.by(cenote::Reason::Broken), 1, "{closed:?}");
        },
    )
    .await;
}

#[tokio::test]
async fn connections_that_are_cut_while_idle_fail_one_statement_each_at_most() {
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
async fn an_answer_that_is_cut_halfway_is_an_error_and_never_a_short_answer() {
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
