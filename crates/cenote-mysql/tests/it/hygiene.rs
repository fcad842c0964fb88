//! What a caller leaves behind in its session, no other caller sees.

use cenote_mysql::mysql_async::ChangeUserOpts;
use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_mysql::{Pool, Reset};

use crate::rig::Rig;

/// What is left behind, and a query that returns 1 if it is still there.
const DIRT: [(&str, &str); 10] = [
    ("SET @x = 1", "SELECT @x IS NOT NULL"),
    ("SELECT @y := 1", "SELECT @y IS NOT NULL"),
    (
        "SET SESSION lock_wait_timeout = 77",
        "SELECT @@lock_wait_timeout = 77",
    ),
    (
        "SET NAMES latin1",
        "SELECT @@character_set_client = 'latin1'",
    ),
    ("SET autocommit = 0", "SELECT @@autocommit = 0"),
    ("BEGIN", "SELECT @@in_transaction"),
    (
        "BEGIN; INSERT INTO t VALUES (1, 1)",
        "SELECT COUNT(*) FROM t",
    ),
    ("USE mysql", "SELECT DATABASE() = 'mysql'"),
    ("SELECT LAST_INSERT_ID(9)", "SELECT LAST_INSERT_ID() = 9"),
    (
        "SELECT GET_LOCK(DATABASE(), 0)",
        "SELECT IS_USED_LOCK(DATABASE()) IS NOT NULL",
    ),
];

#[tokio::test]
async fn session_state_is_gone_and_the_connection_stays() {
    let rig = Rig::with("dirt", |builder| builder.max_size(1)).await;
    let id = rig.acquire().await.id();

    for (dirt, is_there) in DIRT {
        let mut lease = rig.acquire().await;
        lease.query_drop(dirt).await.unwrap();
        let there: Option<u8> = lease.query_first(is_there).await.unwrap();
        assert_eq!(there, Some(1), "{dirt} leaves something");
        drop(lease);

        let mut lease = rig.acquire().await;
        let there: Option<u8> = lease.query_first(is_there).await.unwrap();
        assert_eq!((there, lease.id()), (Some(0), id), "{dirt}");
    }
}

#[tokio::test]
async fn session_state_is_gone_where_the_driver_was_used_directly() {
    let rig = Rig::with("raw_dirt", |builder| builder.max_size(1)).await;

    for (dirt, is_there) in DIRT {
        let mut lease = rig.acquire().await;
        let conn = &mut ***lease;
        conn.query_drop(dirt).await.unwrap();
        drop(lease);

        let there: Option<u8> = rig.pool.query_first(is_there).await.unwrap();
        assert_eq!(there, Some(0), "{dirt}");
    }
    assert_eq!(rig.pool.status().opened, 1);
}

#[tokio::test]
async fn temporary_tables_and_table_locks_are_gone() {
    let rig = Rig::with("temporary", |builder| builder.max_size(1)).await;
    let mut lease = rig.acquire().await;
    lease
        .query_drop("CREATE TEMPORARY TABLE u (a INT)")
        .await
        .unwrap();
    lease.query_drop("LOCK TABLES t WRITE").await.unwrap();
    drop(lease);

    let gone = rig.pool.query_drop("SELECT * FROM u").await.unwrap_err();

    assert!(gone.to_string().contains("1146"), "{gone}");
    assert!(
        rig.rows().await.is_empty(),
        "another session reads the table"
    );
}

#[tokio::test]
async fn a_prepared_statement_is_prepared_again_after_a_reset() {
    let rig = Rig::with("prepared", |builder| builder.max_size(1)).await;

    for _ in 0..3 {
        let sum: Option<i32> = rig.pool.exec_first("SELECT ? + 1", (1,)).await.unwrap();
        assert_eq!(sum, Some(2));
    }

    assert_eq!(rig.pool.status().opened, 1);
}

#[tokio::test]
async fn without_a_database_of_its_own_a_session_with_one_is_closed() {
    let server = cenote_servers::mariadb::find().unwrap();
    let pool = Pool::from_url(server.url()).max_size(1).build().unwrap();
    pool.query_drop("DO 1").await.unwrap();
    pool.query_drop("USE mysql").await.unwrap();

    let database: Option<Option<String>> = pool.query_first("SELECT DATABASE()").await.unwrap();

    assert_eq!((database, pool.status().opened), (Some(None), 2));
}

#[tokio::test]
async fn a_session_that_was_given_to_another_user_is_closed() {
    let rig = Rig::with("astray", |builder| builder.max_size(1)).await;
    let mut admin = rig.admin().await;
    let make = "CREATE OR REPLACE USER cenote_my_astray@'%'; \
                GRANT ALL ON cenote_my_astray.* TO cenote_my_astray@'%'";
    admin.query_drop(make).await.unwrap();
    let mut lease = rig.acquire().await;
    let user = ChangeUserOpts::new().with_user(Some("cenote_my_astray".to_owned()));
    lease.change_user(user).await.unwrap();
    drop(lease);

    let user: Option<String> = rig.pool.query_first("SELECT CURRENT_USER()").await.unwrap();

    assert!(!user.unwrap().contains("astray"));
    assert_eq!(rig.pool.status().opened, 2);
}

#[tokio::test]
async fn a_connection_that_was_not_used_is_not_cleaned() {
    let rig = Rig::with("unused", |builder| builder.max_size(1)).await;
    rig.pool.warm().await.unwrap();

    drop(rig.acquire().await);

    assert_eq!(rig.pool.status().idle, 1, "no cleaning was begun");
}

#[tokio::test]
async fn settings_hold_after_the_open_and_after_each_reset() {
    let rig = Rig::with("settings", |builder| {
        let builder = builder
            .max_size(1)
            .setting("SET @x = 1")
            .setting("SET @y = @x + 1");
        builder
            .after_connect(|conn| Box::pin(async move { conn.query_drop("SET @z = @y + 1").await }))
    })
    .await;

    for _ in 0..3 {
        let mut lease = rig.acquire().await;
        let all: Option<(i32, i32, i32)> = lease.query_first("SELECT @x, @y, @z").await.unwrap();
        assert_eq!(all, Some((1, 2, 3)));
        lease
            .query_drop("SET @x = 9, @y = 9, @z = 9")
            .await
            .unwrap();
    }
    assert_eq!(rig.pool.status().opened, 1);
}

#[tokio::test]
async fn without_resets_only_transactions_end() {
    let rig = Rig::with("never", |builder| builder.max_size(1).reset(Reset::Never)).await;
    let mut lease = rig.acquire().await;
    lease.query_drop("SET @x = 1").await.unwrap();
    lease.query_drop("BEGIN").await.unwrap();
    lease
        .exec_drop("INSERT INTO t VALUES (?, 1)", (1,))
        .await
        .unwrap();
    drop(lease);

    let there: Option<i32> = rig.pool.query_first("SELECT @x").await.unwrap();
    let open: Option<i32> = rig
        .pool
        .query_first("SELECT @@in_transaction")
        .await
        .unwrap();

    assert_eq!((there, open), (Some(1), Some(0)));
    assert!(rig.rows().await.is_empty());
}

#[tokio::test]
async fn without_resets_a_clean_session_is_idle_at_once() {
    let rig = Rig::with("at_once", |builder| builder.max_size(1).reset(Reset::Never)).await;

    for sql in ["SELECT 1", "INSERT INTO t VALUES (1, 1)", "BEGIN; ROLLBACK"] {
        let mut lease = rig.acquire().await;
        lease.query_drop(sql).await.unwrap();
        drop(lease);
        assert_eq!(rig.pool.status().idle, 1, "{sql}");
    }
    let mut lease = rig.acquire().await;
    lease.exec_drop("SELECT ?", (1,)).await.unwrap();
    let statement = lease.prep("SELECT 2").await.unwrap();
    drop((lease, statement));
    assert_eq!(rig.pool.status().idle, 1);
}

#[tokio::test]
async fn without_resets_the_server_is_asked_after_an_error_and_after_direct_use() {
    let rig = Rig::with("asked", |builder| builder.max_size(1).reset(Reset::Never)).await;

    let mut lease = rig.acquire().await;
    lease
        .query_drop("BEGIN; INSERT INTO t VALUES (1, 1)")
        .await
        .unwrap();
    lease.query_drop("nonsense").await.unwrap_err();
    drop(lease);
    let mut lease = rig.acquire().await;
    let open: Option<i32> = lease.query_first("SELECT @@in_transaction").await.unwrap();
    assert_eq!(open, Some(0), "after an error");
    let conn = &mut ***lease;
    conn.query_drop("BEGIN; INSERT INTO t VALUES (2, 2)")
        .await
        .unwrap();
    conn.prep("SELECT 1").await.unwrap();
    drop(lease);
    let open: Option<i32> = rig
        .pool
        .query_first("SELECT @@in_transaction")
        .await
        .unwrap();
    assert_eq!(open, Some(0), "after direct use");

    assert!(rig.rows().await.is_empty());
    assert_eq!(rig.pool.status().opened, 1);
}

#[tokio::test]
async fn the_holder_of_a_lease_may_ask_for_a_reset_or_renounce_it() {
    let never = Rig::with("ask", |builder| builder.max_size(1).reset(Reset::Never)).await;
    let always = Rig::with("renounce", |builder| builder.max_size(1)).await;

    for (rig, reset) in [(&never, true), (&always, false)] {
        let mut lease = rig.acquire().await;
        lease.query_drop("SET @x = 1").await.unwrap();
        lease.reset_connection(reset);
        drop(lease);
        let there: Option<i32> = rig.pool.query_first("SELECT @x IS NOT NULL").await.unwrap();
        assert_eq!(there, Some(i32::from(!reset)));
    }

    let there: Option<i32> = always
        .pool
        .query_first("SELECT @x IS NOT NULL")
        .await
        .unwrap();
    assert_eq!(there, Some(0), "the wish is over with its lease");
}
