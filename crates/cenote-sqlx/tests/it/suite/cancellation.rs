//! Operations that are dropped before their end.

use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::timeout;

use super::world;
use super::{Rig, number};

#[tokio::test]
async fn a_statement_that_is_dropped_leaves_no_stray_rows() {
    let rig = Rig::with("stray", |builder| builder.max_size(1)).await;

    for nth in 0..5 {
        let dropped = timeout(
            Duration::from_millis(20 * nth),
            number(&rig.db, &world::slow(1)),
        )
        .await;
        assert!(dropped.is_err());
        let sql = format!("SELECT count(*) + {nth} FROM (SELECT 1 AS a) AS b");
        assert_eq!(
            number(&rig.db, &sql).await.unwrap(),
            i64::try_from(nth).unwrap() + 1
        );
    }

    rig.assert_clean().await;
}

#[tokio::test]
async fn a_stream_that_is_dropped_halfway_leaves_no_stray_rows() {
    let rig = Rig::with("halfway", |builder| builder.max_size(1)).await;

    for taken in [1, 2, 50] {
        let rows = sqlx::query(world::MANY).fetch(&rig.db).take(taken);
        assert_eq!(rows.collect::<Vec<_>>().await.len(), taken);
        assert_eq!(
            number(&rig.db, "SELECT count(*) FROM (SELECT 7 AS a) AS b")
                .await
                .unwrap(),
            1
        );
    }

    rig.assert_clean().await;
}

#[tokio::test]
async fn a_stream_that_was_read_to_its_end_needs_no_cleaning() {
    let rig = Rig::with("to_the_end", |builder| builder.max_size(1)).await;
    let mut rows = sqlx::query("SELECT 1 UNION ALL SELECT 2").fetch(&rig.db);
    while let Some(row) = rows.next().await {
        row.unwrap();
    }
    drop(rows);

    assert_eq!(rig.db.pool().status().idle, 1, "no cleaning is needed");
}

#[tokio::test]
async fn a_statement_that_is_dropped_at_any_moment_leaves_a_clean_pool() {
    let rig = Rig::with("any_moment", |builder| builder.max_size(2)).await;

    for polls in 0..12 {
        let id = i32::try_from(polls).unwrap();
        let _ = cut(polls, rig.insert(id)).await;
        let _ = cut(
            polls,
            rig.db.transaction(async || rig.insert(100 + id).await),
        )
        .await;
        let _ = cut(polls, rig.ids()).await;
    }

    rig.assert_clean().await;
    let ids = rig.ids().await;
    let mut unique = ids.clone();
    unique.dedup();
    assert_eq!(ids, unique);
}

/// Drops `future` after this many polls.
async fn cut<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut left = polls;
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| {
        if left == 0 {
            return std::task::Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}
