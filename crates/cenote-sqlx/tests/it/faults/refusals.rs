//! A server that is there and takes nobody: too many connections, a wrong password.

use std::time::Duration;

use cenote::OnOpenError;
use cenote_sqlx::{Builder, Class};
use futures_util::future::join_all;
use sqlx::Connection;
use tokio::time::sleep;

use super::clock::by;
use super::world::{self, DB};
use super::{ACQUIRE, Db, LONGEST, MAX_SIZE, Trial, back_off};

/// The fewest that both servers can be told to take, and how they say that there are as many.
const ROOM: (&str, &str) = ("max_connections", "10");
const TOO_MANY: [&str; 2] = ["too many clients", "Too many connections"];

type Wire = <DB as sqlx::Database>::Connection;

/// Takes all the room that is left.
async fn fill(trial: &Trial, url: &str) -> Vec<Wire> {
    let mut taken = Vec::new();
    // So that the way around is among those that have one.
    trial.sessions().await;
    loop {
        match Wire::connect(url).await {
            Ok(connection) => taken.push(connection),
            Err(_) => return taken,
        }
    }
}

#[tokio::test]
async fn a_full_server_is_an_error_that_says_so_and_its_first_free_place_is_taken() {
    let server = world::start(&[ROOM]);
    let trial = Trial::on(server.url(), "full", |builder| builder).await;
    let taken = fill(&trial, server.url()).await;

    let errors = join_all((0..MAX_SIZE).map(|_| trial.acquire())).await;
    for error in errors {
        let error = error.unwrap_err();
        assert_eq!(Db::classify(&error), Class::Refused);
        let text = error.to_string();
        assert!(TOO_MANY.iter().any(|cause| text.contains(cause)), "{text}");
    }
    drop(taken);

    trial.assert_recovered(1, back_off(Duration::ZERO)).await;
}

#[tokio::test]
async fn one_who_waits_for_room_on_a_full_server_is_served_within_one_back_off() {
    let server = world::start(&[ROOM]);
    let retry = |builder: Builder<DB>| {
        builder
            .on_open_error(OnOpenError::Retry)
            .acquire_timeout(Duration::from_secs(20))
    };
    let trial = Trial::on(server.url(), "room", retry).await;
    let taken = fill(&trial, server.url()).await;
    let full = Duration::from_millis(400);
    let make_room = async {
        sleep(full).await;
        drop(taken);
        trial.first_success(2, back_off(full)).await;
    };

    let (waited, ()) = tokio::join!(trial.write(1), make_room);

    waited.unwrap();
    assert!(trial.db.pool().status().open_failed > 2, "it was no test");
    trial.assert_recovered(3, Duration::ZERO).await;
}

#[tokio::test]
async fn a_pool_that_is_larger_than_its_server_serves_all_with_what_it_gets() {
    let server = world::start(&[ROOM]);
    let large = |builder: Builder<DB>| {
        builder
            .max_size(30)
            .max_opening(30)
            .on_open_error(OnOpenError::Retry)
            .acquire_timeout(Duration::from_secs(20))
    };
    let trial = Trial::on(server.url(), "large", large).await;
    trial.sessions().await;

    let written = join_all((1..=200).map(|id| trial.write(id))).await;

    for ended in written {
        ended.unwrap();
    }
    let seen = trial.db.pool().status();
    assert!(seen.open_failed > 0, "it was no test: {seen:?}");
    assert_eq!(seen.in_use + seen.waiting, 0);
    assert!(trial.sessions().await <= 10);
    trial.assert_rows().await;
}

/// A user with a password that is not the one in the URL, and how to make it so.
async fn wrong_password(name: &str, retry: OnOpenError) -> (cenote_servers::Server, Trial) {
    let server = world::start(&[]);
    let admin: Db = Db::from_url(server.url()).max_size(1).build().unwrap();
    world::lock_with_password(&server, &admin).await;
    let url = server.url().to_owned();
    let dress = move |builder: Builder<DB>| builder.on_open_error(retry);
    let trial = Trial::guest(&url, name, "guest:wrong", dress).await;
    (server, trial)
}

#[tokio::test]
async fn a_wrong_password_is_an_error_at_once_and_asked_once_per_caller() {
    let (_server, trial) = wrong_password("password", OnOpenError::Fail).await;

    let errors = join_all((0..10).map(|_| by(ACQUIRE, trial.db.acquire()))).await;

    for error in errors {
        let text = error.unwrap_err().to_string();
        assert!(text.contains("guest") && !text.contains("wrong"), "{text}");
        let causes = ["password authentication failed", "Access denied"];
        assert!(causes.iter().any(|cause| text.contains(cause)), "{text}");
    }
    assert!(
        trial.proxy.counts().accepted <= 10,
        "{:?}",
        trial.proxy.counts()
    );
    world::set_password(&trial.admin, "wrong").await;
    trial.assert_recovered(1, back_off(Duration::ZERO)).await;
}

#[tokio::test]
async fn a_wrong_password_is_not_tried_in_a_storm_by_those_who_wait() {
    let (_server, trial) = wrong_password("storm_of_tries", OnOpenError::Retry).await;

    let errors = join_all((0..20).map(|_| trial.acquire())).await;

    for error in errors {
        let text = error.unwrap_err().to_string();
        let causes = ["password authentication failed", "Access denied"];
        assert!(causes.iter().any(|cause| text.contains(cause)), "{text}");
    }
    // In a second the back-off allows some six tries, for each of the four that may be opened at once.
    let tries = trial.proxy.counts().accepted;
    assert!((4..=24).contains(&tries), "{tries} tries");
    world::set_password(&trial.admin, "wrong").await;
    trial.assert_recovered(1, LONGEST).await;
}
