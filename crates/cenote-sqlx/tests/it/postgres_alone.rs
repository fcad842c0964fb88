//! Tests for PostgreSQL alone, which look at the state of the server.

use std::time::Duration;

use cenote_sqlx::{Db, Reset};
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
async fn prepared_statements_of_the_driver_survive_a_reset() {
    let db = one();
    let prepared = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'SELECT 815%'";
    sqlx::query("SELECT 815 + $1")
        .bind(1)
        .execute(&db)
        .await
        .unwrap();

    let change = async { sqlx::query("SET work_mem = '2MB'").execute(&db).await };
    cenote::scope(change).await.unwrap();

    assert_eq!(count(&db, prepared).await, 1);
    let mut lease = db.acquire().await.unwrap();
    sqlx::query("SELECT 1").execute(&mut *lease).await.unwrap();
    drop(lease);
    assert_eq!(
        count(&db, prepared).await,
        1,
        "use of the raw connection kept it too"
    );
    let sum: i32 = sqlx::query_scalar("SELECT 815 + $1")
        .bind(1)
        .fetch_one(&db)
        .await
        .unwrap();
    assert_eq!(sum, 816);
}

#[tokio::test]
async fn after_deallocate_all_the_driver_prepares_its_statements_again() {
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
    assert_eq!(sum, 817);
}

#[tokio::test]
async fn discard_all_as_the_reset_keeps_statements_and_settings_right() {
    let reset = Reset::Query(String::from("DISCARD ALL"));
    let db = Db::postgres(world::url()).max_size(1).reset(reset);
    let db = db.setting("SET work_mem = '4322kB'").build().unwrap();
    let work_mem = "SELECT count(*) FROM pg_settings WHERE name = 'work_mem' AND setting = '4322'";
    for _ in 0..3 {
        let sum: i32 = sqlx::query_scalar("SELECT 817 + $1")
            .bind(1)
            .fetch_one(&db)
            .await
            .unwrap();
        assert_eq!(sum, 818);
        assert_eq!(count(&db, work_mem).await, 1);
    }

    assert_eq!(db.pool().status().opened, 1, "the connection is kept");
}

#[tokio::test]
async fn a_replication_origin_is_forgotten() {
    let server = world::start(&[]);
    let create = "SELECT pg_replication_origin_create('cenote'); \
                  CREATE FUNCTION unseen() RETURNS void LANGUAGE sql AS \
                  $$ SELECT pg_replication_origin_session_setup('cenote') $$";
    let is_set_up = "SELECT pg_replication_origin_session_is_setup()::int::bigint";
    let db = Db::postgres(server.url()).max_size(1).build().unwrap();
    sqlx::raw_sql(create).execute(&db).await.unwrap();

    for (reset, setup) in [
        (
            Reset::IfDirty,
            "SELECT pg_replication_origin_session_setup('cenote')",
        ),
        (Reset::Always, "SELECT unseen()"),
    ] {
        let db = Db::postgres(server.url()).max_size(1).reset(reset);
        let db = db.build().unwrap();
        let work = async { sqlx::raw_sql(setup).execute(&db).await };
        cenote::scope(work).await.unwrap();

        assert_eq!(count(&db, is_set_up).await, 0, "{setup}");
        assert_eq!(db.pool().status().opened, 1);
    }
}

#[tokio::test]
async fn a_user_without_rights_can_use_reset_always() {
    let admin = one();
    for sql in [
        "DROP ROLE IF EXISTS cenote_plain",
        "CREATE ROLE cenote_plain LOGIN PASSWORD 'p'",
    ] {
        sqlx::query(sql).execute(&admin).await.unwrap();
    }
    let url = crate::world::as_user(&world::url(), "cenote_plain:p");
    let db = Db::postgres(url).max_size(1).reset(Reset::Always);
    let db = db.build().unwrap();

    for _ in 0..3 {
        assert_eq!(count(&db, "SELECT 1::bigint").await, 1);
    }

    assert_eq!(db.pool().status().opened, 1);
}

#[tokio::test]
async fn a_stale_plan_is_prepared_again_and_tried_once() {
    use futures_util::TryStreamExt;
    let (db, other) = (one(), one());
    let alter = async |column: &str| {
        let sql = format!(
            "DROP TABLE IF EXISTS cenote_stale; CREATE TABLE cenote_stale (a int, {column} int); \
             INSERT INTO cenote_stale VALUES (1, 2)"
        );
        let sql = sqlx::AssertSqlSafe(sql);
        sqlx::raw_sql(sql).execute(&other).await.unwrap();
    };
    let select = "SELECT * FROM cenote_stale WHERE a = $1";
    let migrate = async |columns: &str| {
        let sql = format!("ALTER TABLE cenote_stale ADD COLUMN {columns} text");
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
            .execute(&other)
            .await
            .unwrap();
    };
    alter("b").await;
    let before = backend(&db).await;
    sqlx::query(select).bind(1).execute(&db).await.unwrap();

    migrate("c").await;
    assert_eq!(
        sqlx::query(select)
            .bind(1)
            .fetch_all(&db)
            .await
            .unwrap()
            .len(),
        1
    );
    migrate("d").await;
    assert!(
        sqlx::query(select)
            .bind(1)
            .fetch_optional(&db)
            .await
            .unwrap()
            .is_some()
    );
    migrate("e").await;
    sqlx::query(select).bind(1).execute(&db).await.unwrap();
    migrate("f").await;
    let rows: Vec<_> = sqlx::query(select)
        .bind(1)
        .fetch(&db)
        .try_collect()
        .await
        .unwrap();
    assert_eq!(rows.len(), 1);
    let update = "UPDATE cenote_stale SET a = a WHERE a = $1 RETURNING *";
    sqlx::query(update).bind(1).execute(&db).await.unwrap();
    migrate("h").await;
    let row = sqlx::query(update).bind(1).fetch_optional(&db).await;
    assert!(row.unwrap().is_some());
    sqlx::query(select).bind(1).execute(&db).await.unwrap();
    migrate("g").await;
    let inside = db.transaction(async || sqlx::query(select).bind(1).execute(&db).await);
    let error = inside.await.unwrap_err();
    assert_eq!(error.as_database_error().unwrap().code().unwrap(), "0A000");
    let again = db.transaction(async || sqlx::query(select).bind(1).execute(&db).await);
    again.await.unwrap();

    assert_eq!(backend(&db).await, before, "the connection is kept");
}

#[tokio::test]
async fn changes_by_a_function_are_undone_with_reset_always_only() {
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
async fn a_dropped_statement_is_cancelled_on_the_server_and_its_connection_kept() {
    let db = one();
    let before = backend(&db).await;
    let watcher = one();
    let running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(30.815)%' AND state = 'active'";
    let sleeping = sqlx::query("SELECT pg_sleep(30.815)").execute(&db);
    let seen = timeout(Duration::from_secs(20), async {
        while count(&watcher, running).await == 0 {}
    });
    // `select!` drops the statement when it has been seen.
    tokio::select! {
        ended = sleeping => panic!("the statement ended: {ended:?}"),
        seen = seen => assert!(seen.is_ok(), "the statement never ran"),
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
        "the connection for cancel requests was kept"
    );
}

#[tokio::test]
async fn without_cancel_on_server_a_dropped_statement_closes_its_connection() {
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
async fn a_long_stream_that_is_dropped_does_not_delay_the_next_statement() {
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

/// Inserts a row that violates a deferred constraint, so that the commit fails.
const ORPHAN: &str = "INSERT INTO cenote_deferred VALUES (1, 2)";

async fn create_deferred(db: &Db<Postgres>) {
    let create = "DROP TABLE IF EXISTS cenote_deferred; \
                  CREATE TABLE cenote_deferred (id int PRIMARY KEY, \
                  next int REFERENCES cenote_deferred DEFERRABLE INITIALLY DEFERRED)";
    sqlx::raw_sql(create).execute(db).await.unwrap();
}

#[tokio::test]
async fn a_commit_that_the_database_refuses_is_an_error_and_leaves_no_row() {
    let db = one();
    create_deferred(&db).await;

    let refused = db.transaction(async || sqlx::query(ORPHAN).execute(&db).await);

    let error = refused.await.unwrap_err();
    let cause = error.as_database_error().unwrap();
    assert!(cause.is_foreign_key_violation(), "{error}");
    assert_eq!(count(&db, "SELECT count(*) FROM cenote_deferred").await, 0);
}

#[tokio::test]
async fn a_failed_commit_sends_no_rollback_that_the_server_warns_about() {
    let server = world::start(&[]);
    let db = Db::postgres(server.url()).max_size(1).build().unwrap();
    create_deferred(&db).await;

    let ambient = db.transaction(async || sqlx::query(ORPHAN).execute(&db).await);
    assert!(ambient.await.is_err());
    let mut by_hand = db.begin().await.unwrap();
    sqlx::query(ORPHAN).execute(&mut by_hand).await.unwrap();
    assert!(by_hand.commit().await.is_err());
    let in_scope = cenote::scope(async {
        sqlx::query("SET work_mem = '2MB'").execute(&db).await?;
        let refused = db.transaction(async || sqlx::query(ORPHAN).execute(&db).await);
        assert!(refused.await.is_err());
        sqlx::query("SELECT 1").execute(&db).await
    });
    in_scope.await.unwrap();

    assert_eq!(count(&db, "SELECT count(*) FROM cenote_deferred").await, 0);
    assert_eq!(db.pool().status().opened, 1, "the connection is kept");
    let log = server.log();
    assert!(log.contains("violates foreign key"), "{log}");
    assert!(!log.contains("WARNING"), "{log}");
}

#[tokio::test]
async fn an_advisory_lock_of_sqlx_takes_a_lease_and_is_gone_with_it() {
    let db = Db::postgres(world::url()).max_size(2).build().unwrap();
    let lock = sqlx::postgres::PgAdvisoryLock::new("cenote: a lease holds this lock");
    let lease = db.acquire().await.unwrap();

    let held = lock.acquire(lease).await.unwrap();

    let mut other = db.acquire().await.unwrap();
    let refused = lock.try_acquire(&mut other).await.unwrap();
    assert!(refused.is_right(), "another session has it");
    drop(refused);
    let lease = held.release_now().await.unwrap();
    drop(lease);
    assert!(lock.try_acquire(&mut other).await.unwrap().is_left());
}

#[tokio::test]
async fn a_close_waits_for_the_last_statement() {
    let db = one();
    let mut lease = db.acquire().await.unwrap();
    let mut closing = std::pin::pin!(db.close());

    let early = timeout(Duration::from_millis(50), &mut closing).await;
    let slow = sqlx::query("SELECT pg_sleep(0.05)")
        .execute(&mut lease)
        .await;
    drop(lease);
    closing.await;

    assert!(early.is_err(), "a lease was out");
    slow.unwrap();
    assert_eq!(db.pool().status().total, 0);
}
