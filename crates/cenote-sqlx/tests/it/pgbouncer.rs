//! A private PgBouncer in transaction mode, in front of the PostgreSQL of the other tests.

use std::time::Duration;

use cenote_fleet::{Fleet, JoinError, Memory};
use cenote_servers::{Server, pgbouncer};
use cenote_sqlx::Db;
use cenote_testkit::Proxy;
use sqlx::Postgres;

use crate::world::postgres as world;

/// Starts a bouncer with two server connections, and builds a handle with up to six connections to
/// it. The bouncer stops when it is dropped.
fn bounced() -> (Server, Db<Postgres>) {
    let settings = [("default_pool_size", "2"), ("max_client_conn", "100")];
    let bouncer =
        pgbouncer::start_with(world::server(), &settings).unwrap_or_else(|error| panic!("{error}"));
    let builder = Db::postgres(bouncer.url())
        .max_size(6)
        .behind_transaction_pooler();
    let db = builder
        .acquire_timeout(Duration::from_secs(30))
        .build()
        .unwrap();
    (bouncer, db)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_share_two_server_connections_without_mixing_statements_up() {
    let (_bouncer, db) = bounced();
    for sql in [
        "DROP TABLE IF EXISTS cenote_bounced",
        "CREATE TABLE cenote_bounced (id int PRIMARY KEY, text text)",
    ] {
        sqlx::query(sql).execute(&db).await.unwrap();
    }

    let tasks = (0..40).map(|nth: i32| {
        let db = db.clone();
        tokio::spawn(async move {
            for round in 0..5 {
                // Different texts and types, so that a mixed up statement would fail.
                let sum: i32 = sqlx::query_scalar("SELECT $1 + $2")
                    .bind(nth)
                    .bind(round)
                    .fetch_one(&db)
                    .await?;
                assert_eq!(sum, nth + round);
                let text: String = sqlx::query_scalar("SELECT $1 || 'x'")
                    .bind(nth.to_string())
                    .fetch_one(&db)
                    .await?;
                assert_eq!(text, format!("{nth}x"));
            }
            db.transaction(|| async {
                let insert = sqlx::query("INSERT INTO cenote_bounced VALUES ($1, $2)")
                    .bind(nth)
                    .bind("kept");
                insert.execute(&db).await?;
                if nth % 4 == 0 {
                    Err(sqlx::Error::RowNotFound)
                } else {
                    Ok(())
                }
            })
            .await
        })
    });
    let mut kept = 0;
    for task in tasks.collect::<Vec<_>>() {
        match task.await.unwrap() {
            Ok(()) => kept += 1,
            Err(sqlx::Error::RowNotFound) => {}
            Err(error) => panic!("{error}"),
        }
    }

    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM cenote_bounced WHERE text = $1")
        .bind("kept")
        .fetch_one(&db)
        .await
        .unwrap();
    assert_eq!((rows, kept), (30, 30));
    assert!(db.pool().status().opened > 2, "more clients than servers");
}

#[tokio::test]
async fn without_being_told_of_the_bouncer_the_error_names_the_setting() {
    // As a bouncer is by default.
    let settings = [("ignore_startup_parameters", "")];
    let bouncer = pgbouncer::start_with(world::server(), &settings);
    let bouncer = bouncer.unwrap_or_else(|error| panic!("{error}"));
    let db = Db::postgres(bouncer.url()).build().unwrap();

    let error = db.acquire().await.unwrap_err().to_string();

    assert!(error.contains("extra_float_digits"), "{error}");
    assert!(error.contains("`behind_transaction_pooler()`"), "{error}");
}

#[tokio::test]
async fn an_error_behind_a_bouncer_leaves_no_transaction_open() {
    let (_bouncer, db) = bounced();

    for _ in 0..5 {
        let error = sqlx::query("SELECT 1 / $1")
            .bind(0)
            .execute(&db)
            .await
            .unwrap_err();
        assert_eq!(error.as_database_error().unwrap().code().unwrap(), "22012");
        let sleeping = sqlx::query("SELECT pg_sleep($1)")
            .bind(0.5_f64)
            .execute(&db);
        assert!(
            tokio::time::timeout(Duration::from_millis(50), sleeping)
                .await
                .is_err()
        );
    }

    let one: i32 = sqlx::query_scalar("SELECT $1")
        .bind(1)
        .fetch_one(&db)
        .await
        .unwrap();
    assert_eq!(one, 1);
}

/// Behind the pooler a session is not that of its statement, so that it cannot be looked up.
#[tokio::test]
async fn behind_a_transaction_pooler_there_is_no_watchdog() {
    let (bouncer, _) = bounced();
    let proxy = Proxy::to_url(bouncer.url()).await.unwrap();
    let builder = Db::postgres(proxy.url(bouncer.url())).max_size(1);
    let builder = builder.silent_after(Duration::from_millis(20));
    let db = builder.behind_transaction_pooler().build().unwrap();

    let slow = sqlx::raw_sql("SELECT pg_sleep(0.3)").execute(&db).await;

    slow.unwrap();
    assert_eq!(proxy.counts().accepted, 1, "a look was made");
}

/// The server cannot tell whose sessions it has.
#[tokio::test]
async fn a_fleet_on_the_server_refuses_a_pool_behind_a_transaction_pooler() {
    let (_bouncer, db) = bounced();
    let server = world::server().parse().unwrap();
    let joining = Fleet::postgres(&server, "bounced").unwrap();

    let error = joining.join(db.pool()).await.unwrap_err();

    assert!(matches!(error, JoinError::SharedSessions), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("Redis or NATS") && text.contains("limit of the pooler"),
        "{text}"
    );
    assert!(!error.is_retryable() && !db.pool().is_suspended());
    let fleet = Fleet::on(Memory::new()).join(db.pool()).await.unwrap();
    let one: i32 = sqlx::query_scalar("SELECT $1")
        .bind(1)
        .fetch_one(&db)
        .await
        .unwrap();
    assert_eq!((one, fleet.status().members.len()), (1, 1));
}
