//! How transactions end.

use std::sync::Arc;
use std::time::Duration;

use cenote_sqlx::TransactionOptions;
use futures_util::StreamExt;
use tokio::time::timeout;

use super::world;
use super::{Rig, number};

#[tokio::test]
async fn work_that_ends_with_ok_is_committed() {
    let rig = Rig::new("commit").await;

    let value = rig.db.transaction(async || {
        rig.insert(1).await?;
        assert!(rig.db.in_transaction());
        rig.insert(2).await?;
        Ok::<_, sqlx::Error>("done")
    });

    assert_eq!(value.await.unwrap(), "done");
    assert!(!rig.db.in_transaction());
    assert_eq!(rig.ids().await, [1, 2]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn all_statements_of_a_transaction_run_on_one_connection() {
    let rig = Rig::new("one_connection").await;
    let acquired = rig.db.pool().status().acquired;

    let work = rig.db.transaction(async || {
        for id in 0..5 {
            rig.insert(id).await?;
            assert_eq!(rig.db.pool().status().in_use, 1);
        }
        Ok::<_, sqlx::Error>(())
    });
    work.await.unwrap();

    assert_eq!(rig.db.pool().status().acquired, acquired + 1);
}

#[tokio::test]
async fn work_that_ends_with_an_error_is_rolled_back() {
    let rig = Rig::new("error").await;

    let failed = rig.db.transaction(async || {
        rig.insert(1).await?;
        Err::<(), _>(sqlx::Error::RowNotFound)
    });

    assert!(matches!(failed.await, Err(sqlx::Error::RowNotFound)));
    assert_eq!(rig.ids().await, [0_i32; 0]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn work_that_panics_is_rolled_back() {
    let rig = Arc::new(Rig::new("panic").await);
    let inner = rig.clone();

    let task = tokio::spawn(async move {
        let work = inner.db.transaction(async || {
            inner.insert(1).await?;
            panic!("on purpose");
            #[expect(unreachable_code, reason = "gives the closure a type")]
            Ok::<_, sqlx::Error>(())
        });
        work.await
    });

    assert!(task.await.unwrap_err().is_panic());
    assert_eq!(rig.ids().await, [0_i32; 0]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn work_that_is_dropped_between_statements_is_rolled_back() {
    let rig = Rig::new("dropped").await;

    let work = rig.db.transaction(async || {
        rig.insert(1).await?;
        std::future::pending::<()>().await;
        Ok::<_, sqlx::Error>(())
    });
    let dropped = timeout(Duration::from_millis(300), work).await;

    assert!(dropped.is_err());
    assert_eq!(rig.ids().await, [0_i32; 0]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn work_that_is_dropped_in_a_statement_is_rolled_back() {
    let rig = Rig::new("dropped_in").await;

    let work = rig.db.transaction(async || {
        rig.insert(1).await?;
        number(&rig.db, &world::slow(3)).await?;
        Ok::<_, sqlx::Error>(())
    });
    let dropped = timeout(Duration::from_millis(300), work).await;

    assert!(dropped.is_err());
    assert_eq!(rig.ids().await, [0_i32; 0]);
    rig.assert_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_is_aborted_is_rolled_back() {
    let rig = Arc::new(Rig::new("aborted").await);
    let inner = rig.clone();
    let (tell, inserted) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move {
        let work = inner.db.transaction(|| async {
            inner.insert(1).await?;
            tell.send(()).expect("the test waits for it");
            std::future::pending::<()>().await;
            Ok::<_, sqlx::Error>(())
        });
        work.await
    });
    inserted.await.expect("the row was inserted");

    task.abort();

    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(rig.ids().await, [0_i32; 0]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_transaction_from_begin_is_committed_rolled_back_or_dropped() {
    let rig = Arc::new(Rig::new("by_hand").await);

    let mut kept = rig.db.begin().await.unwrap();
    rig.insert_on(&mut kept, 1).await.unwrap();
    kept.commit().await.unwrap();
    let mut undone = rig.db.begin().await.unwrap();
    rig.insert_on(&mut undone, 2).await.unwrap();
    undone.rollback().await.unwrap();
    let mut dropped = rig.db.begin().await.unwrap();
    rig.insert_on(&mut dropped, 3).await.unwrap();
    drop(dropped);
    let mut moved = rig.db.begin().await.unwrap();
    let inserting = rig.clone();
    let elsewhere = tokio::spawn(async move {
        inserting.insert_on(&mut moved, 4).await?;
        moved.commit().await
    });
    elsewhere.await.unwrap().unwrap();

    assert_eq!(rig.ids().await, [1, 4]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_read_only_transaction_refuses_to_write_and_the_next_may() {
    let rig = Rig::with("read_only", |builder| builder.max_size(1)).await;
    let options = TransactionOptions::new().read_only();

    let refused = rig
        .db
        .transaction_with(options, async || rig.insert(1).await);
    assert!(refused.await.unwrap_err().as_database_error().is_some());
    let dropped = rig.db.begin_with(options).await.unwrap();
    drop(dropped);

    rig.insert(2).await.unwrap();
    assert_eq!(rig.ids().await, [2]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_commit_after_an_ignored_error_reports_the_truth() {
    let rig = Rig::new("swallowed").await;
    rig.insert(1).await.unwrap();

    let work = rig.db.transaction(async || {
        rig.insert(2).await?;
        let _ = rig.insert(1).await; // a duplicate
        Ok::<_, sqlx::Error>(())
    });
    let committed = work.await.is_ok();

    let expected: &[i32] = if committed { &[1, 2] } else { &[1] };
    assert_eq!(rig.ids().await, expected);
    rig.assert_clean().await;
}

#[tokio::test]
async fn peek_returns_the_connection_of_the_transaction() {
    let rig = Rig::new("peek").await;
    assert!(rig.db.peek().is_none());

    let work = rig.db.transaction(async || {
        let acquired = rig.db.pool().status().acquired;
        let id = cenote_sqlx::Lease::id(&rig.db.peek().expect("the connection is pinned"));
        assert_eq!(cenote_sqlx::Lease::id(&rig.db.acquire().await?), id);
        assert_eq!(rig.db.pool().status().acquired, acquired);
        Ok::<_, sqlx::Error>(())
    });

    work.await.unwrap();
    rig.assert_clean().await;
}

#[tokio::test]
async fn the_lease_of_a_transaction_shows_its_line_and_its_statement() {
    let rig = Rig::new("site").await;

    let line = line!() + 1;
    let work = rig.db.transaction(async || {
        rig.insert(1).await?;
        let held = rig.db.pool().leases().remove(0);
        assert_eq!((held.site.file(), held.site.line()), (file!(), line));
        assert!(held.label.unwrap().starts_with("INSERT INTO cenote_"));
        Ok::<_, sqlx::Error>(())
    });

    work.await.unwrap();
}

#[tokio::test]
async fn a_transaction_survives_a_stream_that_is_dropped_halfway() {
    let rig = Rig::new("halfway_inside").await;

    let work = rig.db.transaction(async || {
        rig.insert(1).await?;
        let mut rows = sqlx::query(world::MANY).fetch(&rig.db);
        assert!(rows.next().await.unwrap().is_ok());
        drop(rows);
        rig.insert(2).await
    });

    work.await.unwrap();
    assert_eq!(rig.ids().await, [1, 2]);
}
