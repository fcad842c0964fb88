//! A server that accepts no connection: too many connections, a wrong password.

use std::time::Duration;

use cenote::config::OnOpenError;
use cenote_sqlx::{Builder, Class};
use futures_util::future::join_all;
use sqlx::Connection;
use tokio::time::sleep;

use super::clock::by;
use super::world::{self, DB};
use super::{ACQUIRE, Db, LONGEST, MAX_SIZE, Trial, back_off};

/// The lowest limit that both servers accept, and their errors at the limit.
const LIMIT: (&str, &str) = ("max_connections", "10");
const TOO_MANY: [&str; 2] = ["too many clients", "Too many connections"];

type Wire = <DB as sqlx::Database>::Connection;

/// Opens connections until the server refuses one.
async fn fill(trial: &Trial, url: &str) -> Vec<Wire> {
    let mut taken = Vec::new();
    // So that the connection of the admin is open already.
    trial.sessions().await;
    loop {
        match Wire::connect(url).await {
            Ok(connection) => taken.push(connection),
            Err(_) => return taken,
        }
    }
}

#[tokio::test]
async fn a_full_server_is_an_error_until_it_accepts_connections_again() {
    let server = world::start(&[LIMIT]);
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
async fn a_waiter_for_a_full_server_is_served_within_one_back_off() {
    let server = world::start(&[LIMIT]);
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
    assert!(
        trial.db.pool().status().open_failed > 2,
        "too few opens failed for a test"
    );
    trial.assert_recovered(3, Duration::ZERO).await;
}

#[tokio::test]
async fn a_pool_that_is_larger_than_the_limit_of_its_server_serves_all_callers() {
    let server = world::start(&[LIMIT]);
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
    assert!(seen.open_failed > 0, "no open failed: {seen:?}");
    assert_eq!(seen.in_use + seen.waiting, 0);
    assert!(trial.sessions().await <= 10);
    trial.assert_rows().await;
}

/// A private server, and a trial whose URL has a wrong password.
async fn wrong_password(name: &str, retry: OnOpenError) -> (cenote_servers::Server, Trial) {
    let server = world::start(&[]);
    let admin: Db = Db::from_url(server.url()).max_size(1).build().unwrap();
    world::lock_with_password(&server, &admin).await;
    let url = server.url().to_owned();
    let customize = move |builder: Builder<DB>| builder.on_open_error(retry);
    let trial = Trial::guest(&url, name, "guest:wrong", customize).await;
    (server, trial)
}

#[tokio::test]
async fn a_wrong_password_is_an_error_at_once_and_is_tried_once_per_caller() {
    let (_server, trial) = wrong_password("password", OnOpenError::Fail).await;

    let errors = join_all((0..10).map(|_| by(ACQUIRE, trial.db.acquire()))).await;

    for error in errors {
        let error = error.unwrap_err();
        assert_eq!(Db::classify(&error), Class::Denied, "{error}");
        let text = error.to_string();
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
async fn a_wrong_password_is_tried_rarely_while_callers_wait() {
    let (_server, trial) = wrong_password("storm_of_tries", OnOpenError::Retry).await;

    let errors = join_all((0..20).map(|_| trial.acquire())).await;

    for error in errors {
        let text = error.unwrap_err().to_string();
        let causes = ["password authentication failed", "Access denied"];
        assert!(causes.iter().any(|cause| text.contains(cause)), "{text}");
    }
    // In a second the back-off allows about six tries for each of the four parallel opens.
    let tries = trial.proxy.counts().accepted;
    assert!((4..=24).contains(&tries), "{tries} tries");
    world::set_password(&trial.admin, "wrong").await;
    trial.assert_recovered(1, LONGEST).await;
}
