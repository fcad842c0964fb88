//! PostgreSQL alone: seen from the server.

use std::time::Duration;

use cenote_sqlx::{Class, Db, Reset};
use sqlx::Postgres;
use tokio::time::{sleep, timeout};

use crate::world::postgres as world;

fn one() -> Db<Postgres> {
    Db::postgres(world::url()).max_size(1).build().unwrap()
}

async fn backend(db: &Db<Postgres>) -> i32 {
    sqlx::query_scalar("SELECT pg_backend_pid()")
        .fetch_one(db)
        .await
        .unwrap()
}

async fn count(db: &Db<Postgres>, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(db).await.unwrap()
}

#[tokio::test]
async fn what_a_session_was_left_with_is_gone_and_the_connection_is_the_same() {
    let db = one();
    let before = backend(&db).await;
    let left: [(&str, &'static str); 12] = [
        (
            "SET statement_timeout = 12345",
            "SELECT count(*) FROM pg_settings WHERE name = 'statement_timeout' AND setting = '12345'",
        ),
        (
            "SELECT set_config('work_mem', '1234kB', false)",
            "SELECT count(*) FROM pg_settings WHERE name = 'work_mem' AND setting = '1234'",
        ),
        (
            "CREATE TEMP TABLE left_over (a int)",
            "SELECT count(*) FROM pg_class WHERE relname = 'left_over'",
        ),
        (
            "SELECT pg_advisory_lock(815)",
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
        ),
        (
            "LISTEN left_over",
            "SELECT count(*) FROM pg_listening_channels()",
        ),
        (
            "PREPARE left_over AS SELECT 1",
            "SELECT count(*) FROM pg_prepared_statements WHERE name = 'left_over'",
        ),
        (
            "BEGIN; DECLARE left_over CURSOR WITH HOLD FOR SELECT 1; COMMIT",
            "SELECT count(*) FROM pg_cursors WHERE name = 'left_over'",
        ),
        (
            "SET search_path = pg_catalog",
            "SELECT count(*) FROM pg_settings WHERE name = 'search_path' AND setting = 'pg_catalog'",
        ),
        (
            "SET ROLE pg_monitor",
            "SELECT (current_user = 'pg_monitor')::int::bigint",
        ),
        (
            "SET SESSION AUTHORIZATION pg_monitor",
            "SELECT (session_user = 'pg_monitor')::int::bigint",
        ),
        (
            "START TRANSACTION; SET LOCAL work_mem = '1235kB'",
            "SELECT count(*) FROM pg_settings WHERE name = 'work_mem' AND setting = '1235'",
        ),
        (
            "START TRANSACTION READ ONLY",
            "SELECT count(*) FROM pg_settings WHERE name = 'transaction_read_only' AND setting = 'on'",
        ),
    ];
    for (leave, seen) in left {
        let mut lease = db.acquire().await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(leave))
            .execute(&mut lease)
            .await
            .unwrap();
        let there: i64 = sqlx::query_scalar(seen)
            .fetch_one(&mut lease)
            .await
            .unwrap();
        assert_eq!(there, 1, "{leave} is to leave something");
        drop(lease);

        assert_eq!(count(&db, seen).await, 0, "{leave} was left over");
    }
    assert_eq!(backend(&db).await, before);
    assert_eq!(db.pool().status().opened, 1);
}

#[tokio::test]
async fn the_drivers_statements_survive_a_reset() {
    let db = one();
    let prepared = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'SELECT 815%'";
    sqlx::query("SELECT 815 + $1")
        .bind(1)
        .execute(&db)
        .await
        .unwrap();

    sqlx::query("SET work_mem = '2MB'")
        .execute(&db)
        .await
        .unwrap();

    assert_eq!(count(&db, prepared).await, 1);
    let mut lease = db.acquire().await.unwrap();
    sqlx::query("SELECT 1").execute(&mut *lease).await.unwrap();
    drop(lease);
    assert_eq!(count(&db, prepared).await, 1, "foreign hands left it too");
    let sum: i32 = sqlx::query_scalar("SELECT 815 + $1")
        .bind(1)
        .fetch_one(&db)
        .await
        .unwrap();
    assert_eq!(sum, 816);
}

#[tokio::test]
async fn the_drivers_statements_are_forgotten_with_those_of_the_session() {
    let db = one();
    sqlx::query("SELECT 816 + $1")
        .bind(1)
        .execute(&db)
        .await
        .unwrap();

    sqlx::query("DEALLOCATE ALL").execute(&db).await.unwrap();

    let sum: i32 = sqlx::query_scalar("SELECT 816 + $1")
        .bind(1)
        .fetch_one(&db)
        .await
        .unwrap();
    assert_eq!(sum, 817, "the driver prepares it again");
}

#[tokio::test]
async fn what_a_function_does_unseen_is_reset_if_that_is_always_done() {
    let sql = "SELECT count(*) FROM pg_settings WHERE name = 'work_mem' AND setting = '4321'";
    let function = "CREATE OR REPLACE FUNCTION cenote_unseen() RETURNS text LANGUAGE sql AS \
                    $$ SELECT set_config('work_mem', '4321kB', false) $$";
    sqlx::raw_sql(function).execute(&one()).await.unwrap();

    for (reset, left) in [(Reset::IfDirty, 1), (Reset::Always, 0)] {
        let db = Db::postgres(world::url()).max_size(1).reset(reset.clone());
        let db = db.build().unwrap();
        sqlx::raw_sql("SELECT cenote_unseen()")
            .execute(&db)
            .await
            .unwrap();

        assert_eq!(count(&db, sql).await, left, "{reset:?}");
        assert_eq!(db.pool().status().opened, 1);
    }
}

#[tokio::test]
async fn settings_of_the_template_come_back_after_a_reset() {
    let db = Db::postgres(world::url())
        .max_size(1)
        .setting("SET work_mem = '3MB'")
        .build()
        .unwrap();
    for _ in 0..2 {
        let set: String = sqlx::query_scalar("SELECT current_setting('work_mem')")
            .fetch_one(&db)
            .await
            .unwrap();
        assert_eq!(set, "3MB");
        sqlx::query("SET work_mem = '5MB'")
            .execute(&db)
            .await
            .unwrap();
    }
    assert_eq!(db.pool().status().opened, 1);
}

#[tokio::test]
async fn a_dropped_statement_is_cancelled_on_the_server_and_its_connection_kept() {
    let db = one();
    let before = backend(&db).await;
    let watcher = one();
    let running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(30.815)%' AND state = 'active'";
    let sleeping = sqlx::query("SELECT pg_sleep(30.815)").execute(&db);
    let seen = timeout(Duration::from_secs(20), async {
        while count(&watcher, running).await == 0 {}
    });
    // Whichever is not the first is dropped.
    tokio::select! {
        ended = sleeping => panic!("it was to run: {ended:?}"),
        seen = seen => assert!(seen.is_ok(), "it never ran"),
    }

    let started = std::time::SystemTime::now();
    assert_eq!(backend(&db).await, before, "the connection is the same");

    assert!(started.elapsed().unwrap() < Duration::from_secs(3));
    assert_eq!(count(&watcher, running).await, 0);
    assert_eq!(db.pool().status().opened, 1);
    let cancellers = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_cancel_backend%' AND pid <> pg_backend_pid()";
    sleep(Duration::from_millis(100)).await;
    assert!(
        count(&watcher, cancellers).await <= 1,
        "the connection to cancel by is not kept"
    );
}

#[tokio::test]
async fn where_nothing_may_be_cancelled_a_dropped_statement_closes_its_connection() {
    let db = Db::postgres(world::url())
        .max_size(1)
        .cancel_on_server(false)
        .build()
        .unwrap();
    let before = backend(&db).await;

    let sleeping = sqlx::query("SELECT pg_sleep(1)").execute(&db);
    assert!(timeout(Duration::from_millis(100), sleeping).await.is_err());

    assert_ne!(backend(&db).await, before);
}

#[tokio::test]
async fn a_long_stream_that_is_dropped_does_not_hold_up_the_next() {
    use futures_util::StreamExt;
    let db = one();
    let before = backend(&db).await;
    let mut rows = sqlx::query("SELECT n FROM generate_series(1, 100000000) AS n").fetch(&db);
    assert!(rows.next().await.unwrap().is_ok());
    drop(rows);

    let started = std::time::SystemTime::now();
    assert_eq!(backend(&db).await, before);
    assert!(started.elapsed().unwrap() < Duration::from_secs(3));
}

#[tokio::test]
async fn outside_a_scope_a_killed_connection_is_replaced_on_the_next_use() {
    let (db, admin) = (one(), one());
    let victim = backend(&db).await;
    sqlx::query("SELECT pg_terminate_backend($1)")
        .bind(victim)
        .execute(&admin)
        .await
        .unwrap();

    let error = sqlx::query("SELECT 1").execute(&db).await.unwrap_err();

    assert_eq!(Db::<Postgres>::classify(&error), Class::Broken, "{error}");
    assert_ne!(backend(&db).await, victim);
    assert_eq!(db.pool().status().closed.by(cenote::Reason::Broken), 1);
}

#[tokio::test]
async fn a_bound_connection_that_broke_is_replaced_outside_a_transaction_and_not_inside() {
    let (db, admin) = (one(), one());

    cenote::scope(async {
        sqlx::query("SET work_mem = '7MB'")
            .execute(&db)
            .await
            .unwrap();
        let victim = backend(&db).await;
        sqlx::query("SELECT pg_terminate_backend($1)")
            .bind(victim)
            .execute(&admin)
            .await
            .unwrap();
        assert!(sqlx::query("SELECT 1").execute(&db).await.is_err());
        assert_ne!(backend(&db).await, victim, "a fresh one");
    })
    .await;
    let lost = db.transaction(async || {
        let victim = backend(&db).await;
        sqlx::query("SELECT pg_terminate_backend($1)")
            .bind(victim)
            .execute(&admin)
            .await?;
        assert!(sqlx::query("SELECT 1").execute(&db).await.is_err());
        assert!(
            sqlx::query("SELECT 1").execute(&db).await.is_err(),
            "the error stands"
        );
        Ok::<_, sqlx::Error>(())
    });

    assert!(lost.await.is_err(), "there is nothing to commit");
    backend(&db).await;
}

#[tokio::test]
async fn a_commit_that_the_database_refuses_is_an_error_and_leaves_nothing() {
    let db = one();
    for sql in [
        "DROP TABLE IF EXISTS cenote_deferred",
        "CREATE TABLE cenote_deferred (id int PRIMARY KEY, next int REFERENCES cenote_deferred DEFERRABLE INITIALLY DEFERRED)",
    ] {
        sqlx::query(sql).execute(&db).await.unwrap();
    }

    let refused = db.transaction(async || {
        sqlx::query("INSERT INTO cenote_deferred VALUES (1, 2)")
            .execute(&db)
            .await?;
        Ok::<_, sqlx::Error>(())
    });

    let error = refused.await.unwrap_err();
    assert!(
        error
            .as_database_error()
            .unwrap()
            .is_foreign_key_violation(),
        "{error}"
    );
    assert_eq!(count(&db, "SELECT count(*) FROM cenote_deferred").await, 0);
}

#[tokio::test]
async fn statements_of_a_transaction_meet_one_backend_and_others_any() {
    let db = Db::postgres(world::url()).max_size(3).build().unwrap();

    let inside = db.transaction(async || {
        let first = backend(&db).await;
        let (a, b) = tokio::join!(backend(&db), backend(&db));
        Ok::<_, sqlx::Error>([first, a, b])
    });
    let inside = inside.await.unwrap();
    let slow = || sqlx::query_scalar("SELECT pg_backend_pid() FROM pg_sleep(0.3)").fetch_one(&db);
    let (a, b): (Result<i32, _>, Result<i32, _>) = tokio::join!(slow(), slow());

    assert_eq!(inside, [inside[0]; 3]);
    assert_ne!(a.unwrap(), b.unwrap(), "two at once are two");
}
