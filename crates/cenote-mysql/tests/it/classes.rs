//! What errors mean, by the servers that make them.

use std::time::Duration;

use cenote::Manager;
use cenote::error::ErrorClass;
use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_mysql::{Class, Error, Pool};

use crate::rig::Rig;

#[tokio::test]
async fn errors_of_a_statement_spare_the_connection() {
    let rig = Rig::with("statement", |builder| builder.max_size(1)).await;
    let pool = &rig.pool;
    pool.query_drop("INSERT INTO t VALUES (1, 1)")
        .await
        .unwrap();

    for wrong in [
        "nonsense",
        "SELECT * FROM missing",
        "INSERT INTO t VALUES (1, 1)",
        "INSERT INTO t VALUES ('x', 1)",
        "SELECT (SELECT 1 UNION SELECT 2)",
    ] {
        let error = pool.query_drop(wrong).await.unwrap_err();
        assert_eq!(error.class(), Class::Statement, "{wrong}: {error}");
        assert!(!error.is_retryable() && !error.is_timeout());
    }

    assert_eq!(pool.status().opened, 1);
}

#[tokio::test]
async fn a_lock_that_is_not_free_in_time_is_a_conflict() {
    let rig = Rig::with("conflict", |builder| {
        builder.setting("SET innodb_lock_wait_timeout = 1")
    })
    .await;
    let mut holder = rig.acquire().await;
    holder
        .query_drop("BEGIN; INSERT INTO t VALUES (1, 1)")
        .await
        .unwrap();

    let error = rig
        .pool
        .query_drop("INSERT INTO t VALUES (1, 2)")
        .await
        .unwrap_err();

    assert_eq!(error.class(), Class::Conflict, "{error}");
    assert!(error.is_retryable());
}

#[tokio::test]
async fn a_client_that_the_server_does_not_accept_is_denied() {
    let server = cenote_servers::mariadb::find().unwrap();
    let (_, address) = server.url().split_once('@').unwrap();
    let address = address.trim_end_matches('/');
    for url in [
        format!("mysql://nobody:wrong-word@{address}"),
        format!("{}/no_such_database", server.url().trim_end_matches('/')),
    ] {
        let pool = Pool::from_url(&url).build().unwrap();

        let error = pool.acquire().await.unwrap_err();

        assert_eq!(error.class(), Class::Denied, "{error}");
        assert!(error.as_mysql().is_some() && !error.is_retryable());
        assert!(!format!("{error} {error:?} {pool:?}").contains("wrong-word"));
        let refused = pool.manager().open().await.unwrap_err();
        assert_eq!(pool.manager().classify(&refused), ErrorClass::Denied);
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_no_broken_statement() {
    let pool = Pool::from_url("mysql://app@127.0.0.1:1/shop")
        .build()
        .unwrap();

    let error = pool.query_drop("SELECT 1").await.unwrap_err();

    assert_eq!(error.class(), Class::Refused);
    let refused = pool.manager().open().await.unwrap_err();
    assert_eq!(pool.manager().classify(&refused), ErrorClass::Unreachable);
}

#[tokio::test]
async fn too_many_connections_are_refused_and_worth_another_try() {
    let server = cenote_servers::mariadb::start_with(&[("max_connections", "10")]).unwrap();
    let pool = Pool::from_url(server.url()).max_size(30).build().unwrap();
    let mut held = Vec::new();

    // One more is reserved for an administrator, who this user is.
    let error = loop {
        match pool.acquire().await {
            Ok(lease) => held.push(lease),
            Err(error) => break error,
        }
    };

    assert_eq!(error.class(), Class::Refused, "{error}");
    assert!((9..=11).contains(&held.len()), "{}", held.len());
    let refused = pool.manager().open().await.unwrap_err();
    assert_eq!(pool.manager().classify(&refused), ErrorClass::Overloaded);
}

#[tokio::test]
async fn a_timeout_names_the_holder() {
    let rig = Rig::with("holder", |builder| builder.max_size(1)).await;
    let held = rig.acquire().await;

    let brief = rig.pool.acquire_within(Duration::from_millis(50)).await;
    let error = Error::from(brief.unwrap_err());

    assert!(error.is_timeout() && error.is_retryable());
    assert!(error.to_string().contains("rig.rs"), "{error}");
    drop(held);
}
