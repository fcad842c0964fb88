//! Operations that are dropped before their end.

use cenote_mysql::Class;
use cenote_mysql::classify;
use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_testkit::conformance::cut;
use tokio::time::timeout;

use crate::eventually;
use crate::rig::{PATIENCE, Rig, grown_up};

#[tokio::test]
async fn a_statement_that_is_dropped_is_killed_on_the_server() {
    let rig = Rig::with("killed", |builder| builder.max_size(1)).await;
    grown_up(&rig.url).await;
    let pool = rig.pool.clone();
    let asleep = tokio::spawn(async move { pool.query_drop("SELECT SLEEP(1000)").await });
    rig.runs("SLEEP(1000)").await;

    asleep.abort();

    let one: Option<i32> = rig.pool.query_first("SELECT 1").await.unwrap();
    assert_eq!(one, Some(1), "the slot is free again");
    rig.stops("SLEEP(1000)").await;
    eventually("only the pool's session is left", async || {
        rig.sessions().await == 1
    })
    .await;
}

#[tokio::test]
async fn a_prepared_statement_that_is_dropped_is_killed_on_the_server() {
    let rig = Rig::with("killed_prepared", |builder| builder.max_size(1)).await;
    grown_up(&rig.url).await;
    let pool = rig.pool.clone();
    let asleep = tokio::spawn(async move { pool.exec_drop("SELECT SLEEP(?)", (1000,)).await });
    rig.runs("SLEEP(").await;

    asleep.abort();

    rig.stops("SLEEP(").await;
}

#[tokio::test]
async fn many_dropped_statements_are_killed_over_one_connection_beside_the_pool() {
    let rig = Rig::with("many", |builder| builder.max_size(8)).await;
    grown_up(&rig.url).await;
    let asleep: Vec<_> = (0..8)
        .map(|_| {
            let pool = rig.pool.clone();
            tokio::spawn(async move { pool.query_drop("SELECT SLEEP(1000)").await })
        })
        .collect();
    let mut admin = rig.admin().await;
    eventually("all of them run", async || {
        crate::rig::sessions(&mut admin, &rig.mark).await == 8
    })
    .await;
    rig.runs("SLEEP(1000)").await;

    asleep.iter().for_each(tokio::task::JoinHandle::abort);

    rig.stops("SLEEP(1000)").await;
    eventually("no session is left", async || {
        crate::rig::sessions(&mut admin, &rig.mark).await == 0
    })
    .await;
}

#[tokio::test]
async fn without_a_kill_the_pool_goes_on_all_the_same() {
    let rig = Rig::with("unkilled", |builder| {
        builder.max_size(1).cancel_on_server(false)
    })
    .await;
    let pool = rig.pool.clone();
    let asleep = tokio::spawn(async move { pool.query_drop("SELECT SLEEP(3)").await });
    rig.runs("SLEEP(3)").await;

    asleep.abort();

    let one: Option<i32> = rig.pool.query_first("SELECT 1").await.unwrap();
    assert_eq!((one, rig.pool.status().opened), (Some(1), 2));
}

/// The driver by itself would return the late answer to the first question.
#[tokio::test]
async fn a_lease_whose_statement_was_dropped_gives_no_stray_answers() {
    let rig = Rig::with("stray", |builder| builder.max_size(1)).await;
    let mut lease = rig.acquire().await;
    let late = lease.query_first::<i32, _>("SELECT 1 + SLEEP(0.2)");
    assert!(cut(1, late).await.is_none(), "the server sleeps");

    let answer = lease.query_first::<i32, _>("SELECT 2").await;

    assert_eq!(classify(&answer.unwrap_err()), Class::Broken);
    drop(lease);
    let two: Option<i32> = rig.pool.query_first("SELECT 2").await.unwrap();
    assert_eq!(two, Some(2));
}

#[tokio::test]
async fn a_row_stream_that_is_dropped_halfway_leaves_no_stray_rows() {
    let rig = Rig::with("halfway", |builder| builder.max_size(1)).await;
    let rows = (0..500).map(|a| (a, a));
    let mut lease = rig.acquire().await;
    lease
        .exec_batch("INSERT INTO t VALUES (?, ?)", rows)
        .await
        .unwrap();
    drop(lease);

    for taken in [0, 1, 2, 50] {
        let mut lease = rig.acquire().await;
        let mut rows = lease
            .exec_iter("SELECT a FROM t ORDER BY a", ())
            .await
            .unwrap();
        for a in 0..taken {
            let row = rows.next().await.unwrap().unwrap();
            assert_eq!(row.get::<i32, _>(0), Some(a));
        }
        drop(rows);
        let seven: Option<i32> = lease.query_first("SELECT 7").await.unwrap();
        assert_eq!(seven, Some(7), "on the same lease");
        let mut rows = lease.query_iter("SELECT a FROM t").await.unwrap();
        rows.next().await.unwrap().unwrap();
        drop(rows);
        drop(lease);

        let eight: Option<i32> = rig.pool.query_first("SELECT 8").await.unwrap();
        assert_eq!(eight, Some(8), "on the next lease");
    }
}

#[tokio::test]
async fn the_late_error_of_a_statement_that_was_dropped_is_no_error_of_the_next_caller() {
    let rig = Rig::with("late_error", |builder| builder.max_size(1)).await;
    let mut lease = rig.acquire().await;
    let answers = lease.query_iter("SELECT 1; nonsense").await.unwrap();
    drop(answers);
    drop(lease);

    let two: Option<i32> = rig.pool.query_first("SELECT 2").await.unwrap();

    assert_eq!((two, rig.pool.status().opened), (Some(2), 1));
}

#[tokio::test]
async fn a_row_stream_that_is_dropped_long_before_its_end_is_killed() {
    let rig = Rig::with("endless", |builder| builder.max_size(1)).await;
    grown_up(&rig.url).await;
    let mut lease = rig.acquire().await;
    let rows = (0..30).map(|a| (a, a));
    lease
        .exec_batch("INSERT INTO t VALUES (?, ?)", rows)
        .await
        .unwrap();
    // Each row is longer than the server's buffer, so that it is sent at once.
    let slow = "SELECT REPEAT('x', 100000), SLEEP(0.1) FROM t, t AS u, t AS v";
    let mut rows = lease.query_iter(slow).await.unwrap();
    rows.next().await.unwrap().unwrap();
    drop(rows);

    drop(lease);

    let one = timeout(PATIENCE, rig.pool.query_first::<i32, _>("SELECT 1")).await;
    assert_eq!(one.unwrap().unwrap(), Some(1));
    rig.stops("REPEAT('x'").await;
}

/// Each call is dropped at each of its awaits.
#[tokio::test]
async fn a_call_that_is_dropped_at_any_await_leaves_a_sound_pool() {
    let rig = Rig::with("any_await", |builder| builder.max_size(2)).await;
    let pool = &rig.pool;

    for polls in 0..16 {
        let id = i32::try_from(polls).unwrap() * 10;
        let insert = "INSERT INTO t VALUES (?, ?)";
        let _ = cut(polls, pool.exec_drop(insert, (id, 1))).await;
        let _ = cut(polls, pool.query::<i32, _>("SELECT a FROM t")).await;
        let in_transaction = pool.transaction(async || {
            pool.exec_drop(insert, (id + 1, 1)).await?;
            pool.transaction(async || pool.exec_drop(insert, (id + 2, 1)).await)
                .await
        });
        let _ = cut(polls, in_transaction).await;
        let by_hand = async {
            let mut lease = pool.acquire().await?;
            let mut transaction = lease.transaction().await?;
            transaction.exec_drop(insert, (id + 3, 1)).await?;
            transaction.commit().await?;
            let mut rows = lease.query_iter("SELECT a FROM t; SELECT b FROM t").await?;
            while rows.next().await?.is_some() {}
            Ok::<_, cenote_mysql::Error>(())
        };
        let _ = cut(polls, by_hand).await;

        let same: Option<usize> = pool.exec_first("SELECT ?", (polls,)).await.unwrap();
        assert_eq!(same, Some(polls));
    }

    let rows = rig.rows().await;
    let whole = |id: i32| rows.contains(&(id + 1)) == rows.contains(&(id + 2));
    assert!((0..16).all(|nth| whole(nth * 10)), "{rows:?}");
    eventually("the pool is quiet, and the server agrees", async || {
        let status = pool.status();
        status.total == status.idle && status.total == rig.sessions().await
    })
    .await;
}

#[tokio::test]
async fn an_open_that_is_given_up_leaves_nothing_on_the_server() {
    let rig = Rig::with("given_up", |builder| builder.max_size(3)).await;

    for polls in 1..10 {
        let _ = cut(polls, rig.pool.acquire()).await;
    }
    let left = rig.pool.close_within(crate::rig::PATIENCE).await;

    assert!(left.is_empty(), "{left}");
    eventually("no session is left", async || rig.sessions().await == 0).await;
}
