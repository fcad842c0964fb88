//! Changes of a session, and the three ways to treat them.

use cenote::CloseReason;
use cenote_diesel::Reset;
use cenote_diesel::diesel::sql_types::Text;
use cenote_diesel::diesel::{self, dsl::sql};
use cenote_diesel::diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};

use crate::world::{My, Pg, World, on_each_backend};
use crate::{next, pool};

on_each_backend!(
    a_changed_session_is_closed,
    a_changed_session_is_kept_if_the_pool_is_told_so,
);

/// A temporary table is there for as long as its session.
const CHANGE: &str = "create temporary table changed (a int)";
const IS_CHANGED: &str = "insert into changed values (1)";

async fn a_changed_session_is_closed<W: World>(name: &str) {
    let world = W::new(name).await;
    let pool = world.pool(1);
    let mut lease = pool.acquire().await.unwrap();
    lease.batch_execute(CHANGE).await.unwrap();

    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(!is_same);
    assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
    assert!(lease.batch_execute(IS_CHANGED).await.is_err());
}

async fn a_changed_session_is_kept_if_the_pool_is_told_so<W: World>(name: &str) {
    let world = W::new(name).await;
    let pool = pool(world.manager().reset(Reset::Never), 1);
    let mut lease = pool.acquire().await.unwrap();
    lease.batch_execute(CHANGE).await.unwrap();
    // The text does not begin with a word that is known, and a transaction is open.
    lease.batch_execute("/* select */ begin").await.unwrap();
    lease
        .batch_execute("insert into t values (1)")
        .await
        .unwrap();

    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(is_same);
    lease.batch_execute(IS_CHANGED).await.unwrap();
    assert!(!W::is_open(&mut lease).await);
    assert!(world.rows().await.is_empty());
}

async fn shows(connection: &mut AsyncPgConnection, name: &str) -> String {
    let setting = sql::<Text>(&format!("current_setting('{name}')"));
    diesel::select(setting)
        .get_result(connection)
        .await
        .unwrap()
}

#[tokio::test]
async fn postgres_is_reset_and_keeps_its_prepared_statements() {
    let world = Pg::new("pg_reset").await;
    let pool = pool(world.manager().reset(Reset::POSTGRES), 1);
    let mut lease = pool.acquire().await.unwrap();
    assert_eq!(Pg::echo(&mut lease, 1).await, 1);
    let changes = "set lock_timeout = '7s'; set time zone 'Asia/Tokyo'; listen a; begin";
    lease.batch_execute(changes).await.unwrap();
    lease
        .batch_execute("insert into t values (1)")
        .await
        .unwrap();

    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(is_same);
    assert_eq!(Pg::echo(&mut lease, 2).await, 2, "by the same statement");
    assert_eq!(shows(&mut lease, "lock_timeout").await, "0");
    assert_eq!(
        shows(&mut lease, "timezone").await,
        "UTC",
        "as diesel has set it"
    );
    assert!(!Pg::is_open(&mut lease).await);
    assert!(world.rows().await.is_empty());
}

#[tokio::test]
async fn a_setting_by_a_function_is_noticed() {
    let world = Pg::new("pg_set_config").await;
    let pool = pool(world.manager().reset(Reset::POSTGRES), 1);
    let mut lease = pool.acquire().await.unwrap();
    let set = diesel::select(sql::<Text>("set_config('app.tenant', '7', false)"));
    assert_eq!(set.get_result::<String>(&mut lease).await.unwrap(), "7");

    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(is_same);
    assert_eq!(shows(&mut lease, "app.tenant").await, "");
}

/// Each statement opens a transaction then.
#[tokio::test]
async fn mysql_without_autocommit_is_rolled_back_in_any_case() {
    for reset in [Reset::Close, Reset::Never] {
        let world = My::new("my_autocommit").await;
        let pool = pool(world.manager().reset(reset), 1);
        let mut lease = pool.acquire().await.unwrap();
        lease.batch_execute("set autocommit = 0").await.unwrap();
        lease
            .batch_execute("insert into t values (1)")
            .await
            .unwrap();

        let (mut lease, _) = next(&pool, lease).await;

        assert!(!My::is_open(&mut lease).await);
        assert!(world.rows().await.is_empty());
    }
}

/// A log with a warning for each lease is of no use.
#[tokio::test]
async fn postgres_logs_nothing_when_there_is_nothing_to_roll_back() {
    let server = cenote_servers::postgres::start().unwrap();
    let world = Pg::at(server.url(), "quiet").await;
    let pool = pool(world.manager().reset(Reset::POSTGRES), 1);

    for sql in ["set lock_timeout = '7s'", "begin; commit", "select 1"] {
        let mut lease = pool.acquire().await.unwrap();
        lease.batch_execute(sql).await.unwrap();
    }
    drop(pool.acquire().await.unwrap());

    assert_eq!(pool.status().opened, 1);
    let log = server.log();
    assert!(!log.contains("no transaction in progress"), "{log}");
}
