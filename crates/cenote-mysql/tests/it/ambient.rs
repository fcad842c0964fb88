//! Transactions around a future.

use std::sync::Arc;

use cenote::scope::Scope;
use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_mysql::{Class, Error};
use tokio::sync::Notify;

use crate::rig::Rig;

const INSERT: &str = "INSERT INTO t VALUES (?, 0)";

#[tokio::test]
async fn statements_inside_are_committed_together() {
    let rig = Rig::with("ambient", |builder| builder.max_size(2)).await;
    let pool = &rig.pool;

    let seen = pool.transaction(async || {
        pool.exec_drop(INSERT, (1,)).await?;
        pool.acquire().await?.exec_drop(INSERT, (2,)).await?;
        assert!(pool.in_transaction());
        assert_eq!(pool.status().in_use, 1, "one connection for all");
        Ok::<_, Error>(rig.rows().await)
    });

    assert!(
        seen.await.unwrap().is_empty(),
        "others see nothing before the end"
    );
    assert_eq!(rig.rows().await, [1, 2]);
    assert!(!pool.in_transaction());
    assert_eq!(pool.status().in_use, 0);
}

#[tokio::test]
async fn an_error_a_panic_and_a_drop_roll_back() {
    let rig = Rig::with("undone", |builder| builder.max_size(1)).await;
    let pool = &rig.pool;

    let failed: Result<(), Error> = pool
        .transaction(async || {
            pool.exec_drop(INSERT, (1,)).await?;
            pool.query_drop("nonsense").await
        })
        .await;
    let inner = pool.clone();
    let panicked = tokio::spawn(async move {
        let work = async || {
            inner.exec_drop(INSERT, (2,)).await?;
            panic!("on purpose");
        };
        inner.transaction::<_, _, (), Error>(work).await
    });
    let panicked = panicked.await;
    let mut dropped = Box::pin(pool.transaction(async || {
        pool.exec_drop(INSERT, (3,)).await?;
        std::future::pending::<Result<(), Error>>().await
    }));
    crate::eventually("it waits", async || {
        let polled = cenote_testkit::conformance::cut(1, &mut dropped).await;
        assert!(polled.is_none());
        pool.status().in_use == 1
    })
    .await;
    drop(dropped);

    assert!(failed.is_err() && panicked.is_err());
    pool.exec_drop(INSERT, (4,)).await.unwrap();
    assert_eq!(rig.rows().await, [4]);
}

#[tokio::test]
async fn a_transaction_inside_is_a_savepoint() {
    let rig = Rig::with("ambient_nested", |builder| builder.max_size(1)).await;
    let pool = &rig.pool;

    let done = pool.transaction(async || {
        pool.exec_drop(INSERT, (1,)).await?;
        let inner: Result<(), Error> = pool
            .transaction(async || {
                pool.exec_drop(INSERT, (2,)).await?;
                pool.query_drop("nonsense").await
            })
            .await;
        assert!(inner.is_err());
        pool.transaction(async || pool.exec_drop(INSERT, (3,)).await)
            .await
    });

    done.await.unwrap();
    assert_eq!(rig.rows().await, [1, 3]);
}

#[tokio::test]
async fn a_statement_that_is_dropped_inside_fails_the_transaction() {
    let rig = Rig::with("dropped_inside", |builder| builder.max_size(2)).await;
    crate::rig::grown_up(&rig.url).await;
    let pool = &rig.pool;

    let done: Result<u64, Error> = pool
        .transaction(async || {
            pool.exec_drop(INSERT, (1,)).await?;
            let asleep = pool.query_drop("SELECT SLEEP(1000)");
            assert!(cenote_testkit::conformance::cut(1, asleep).await.is_none());
            pool.exec_drop(INSERT, (2,)).await
        })
        .await;

    assert_eq!(done.unwrap_err().class(), Class::Broken);
    assert!(rig.rows().await.is_empty());
    rig.stops("SLEEP(1000)").await;
    pool.exec_drop(INSERT, (3,)).await.unwrap();
}

#[tokio::test]
async fn a_connection_that_is_killed_inside_fails_the_transaction() {
    let rig = Rig::with("killed_inside", |builder| builder.max_size(2)).await;
    let pool = &rig.pool;

    let done: Result<u64, Error> = pool
        .transaction(async || {
            pool.exec_drop(INSERT, (1,)).await?;
            let id = pool.acquire().await?.id();
            rig.kill(id).await;
            let lost = pool.exec_drop(INSERT, (2,)).await;
            assert!(lost.is_err());
            pool.exec_drop(INSERT, (3,)).await
        })
        .await;

    assert!(done.is_err());
    assert!(rig.rows().await.is_empty(), "nothing was written outside");
    pool.exec_drop(INSERT, (4,)).await.unwrap();
    assert_eq!(rig.rows().await, [4]);
}

#[tokio::test]
async fn statements_at_the_same_time_wait_for_each_other() {
    let rig = Rig::with("same_time", |builder| builder.max_size(1)).await;
    let pool = &rig.pool;

    let done = pool.transaction(async || {
        let (one, two) = tokio::join!(pool.exec_drop(INSERT, (1,)), pool.exec_drop(INSERT, (2,)));
        one.and(two)
    });

    done.await.unwrap();
    assert_eq!(rig.rows().await, [1, 2]);
}

#[tokio::test]
async fn a_transaction_of_sql_text_stays_in_its_scope() {
    let rig = Rig::with("by_text", |builder| builder.max_size(2)).await;
    let pool = &rig.pool;

    cenote::scope(async {
        pool.query_drop("BEGIN").await.unwrap();
        assert!(pool.in_transaction());
        pool.exec_drop(INSERT, (1,)).await.unwrap();
        pool.query_drop("COMMIT").await.unwrap();
        assert!(!pool.in_transaction());
        pool.query_drop("BEGIN").await.unwrap();
        pool.exec_drop(INSERT, (2,)).await.unwrap();
    })
    .await;

    crate::eventually("the scope gave its connection back", async || {
        pool.status().in_use == 0
    })
    .await;
    assert_eq!(rig.rows().await, [1]);
    assert_eq!(pool.status().opened, 1);
}

/// The task inside goes on with the connection when the transaction around is gone.
#[tokio::test]
async fn a_task_that_outlives_its_transaction_writes_nothing() {
    let rig = Rig::with("outlived", |builder| builder.max_size(2)).await;
    let (pool, go_on) = (rig.pool.clone(), Arc::new(Notify::new()));
    let heard = Arc::clone(&go_on);
    let (send, task) = tokio::sync::oneshot::channel();

    let around = pool.transaction(async || {
        let scope = Scope::current().unwrap();
        let inner = pool.clone();
        let work = tokio::spawn(async move {
            scope
                .run(async {
                    let mut lease = inner.acquire().await?;
                    heard.notified().await;
                    Ok::<_, Error>(lease.exec_drop(INSERT, (1,)).await?)
                })
                .await
        });
        send.send(work).unwrap();
        std::future::pending::<Result<(), Error>>().await
    });
    let mut around = Box::pin(around);
    let mut task = Box::pin(task);
    let work = loop {
        let _ = cenote_testkit::conformance::cut(1, &mut around).await;
        if let Some(work) = cenote_testkit::conformance::cut(1, &mut task).await {
            break work.unwrap();
        }
        tokio::task::yield_now().await;
    };
    crate::eventually("the task has the connection", async || {
        Scope::current().is_none() && pool.status().in_use == 1
    })
    .await;
    tokio::task::yield_now().await;
    drop(around);
    go_on.notify_one();

    let _ = work.await.unwrap();
    assert!(rig.rows().await.is_empty());
}
