//! Panics of the user's code.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cenote_mysql::mysql_async::prelude::Queryable;

use crate::rig::Rig;

#[tokio::test]
async fn a_panic_while_rows_are_read_leaves_no_stray_rows() {
    let rig = Rig::with("row_panic", |builder| builder.max_size(1)).await;
    rig.pool
        .query_drop("INSERT INTO t VALUES (1, NULL), (2, 2)")
        .await
        .unwrap();
    let pool = rig.pool.clone();

    // The driver panics at a row that does not fit.
    let panicked = tokio::spawn(async move { pool.query::<i32, _>("SELECT b FROM t").await });
    assert!(panicked.await.unwrap_err().is_panic());

    let seven: Option<i32> = rig.pool.query_first("SELECT 7").await.unwrap();
    assert_eq!(seven, Some(7));
}

#[tokio::test]
async fn a_panic_of_the_code_after_connect_fails_the_open_and_no_more() {
    let opens = Arc::new(AtomicUsize::new(0));
    let rig = Rig::with("connect_panic", move |builder| {
        builder.max_size(1).after_connect(move |_| {
            let nth = opens.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                assert!(nth > 0, "on purpose");
                Ok(())
            })
        })
    })
    .await;

    assert!(rig.pool.acquire().await.is_err());
    crate::eventually("another open works", async || {
        rig.pool.query_drop("SELECT 1").await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_panic_after_a_reset_closes_the_connection() {
    let calls = Arc::new(AtomicUsize::new(0));
    let rig = Rig::with("reset_panic", move |builder| {
        builder.max_size(1).after_connect(move |_| {
            let nth = calls.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                assert!(nth != 1, "on purpose");
                Ok(())
            })
        })
    })
    .await;

    rig.acquire().await.query_drop("SET @x = 1").await.unwrap();
    let x: Option<i32> = rig.pool.query_first("SELECT @x IS NULL").await.unwrap();

    assert_eq!((x, rig.pool.status().opened), (Some(1), 2));
}
