//! Transactions inside transactions, at the same time, and in other tasks.

use std::time::Duration;

use cenote::scope::Scope;
use futures_util::StreamExt;
use tokio::time::timeout;

use super::world;
use super::{Rig, number};

type Done = Result<(), sqlx::Error>;

#[tokio::test]
async fn a_nested_transaction_that_fails_undoes_its_own_part() {
    let rig = Rig::new("nested").await;

    let outer = rig.db.transaction(async || {
        rig.insert(1).await?;
        let inner = rig.db.transaction(async || {
            rig.insert(2).await?;
            Err::<(), _>(sqlx::Error::RowNotFound)
        });
        assert!(inner.await.is_err());
        let inner = rig.db.transaction(async || rig.insert(3).await);
        inner.await?;
        rig.insert(4).await
    });

    outer.await.unwrap();
    assert_eq!(rig.ids().await, [1, 3, 4]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn an_sql_error_in_a_nested_transaction_spares_the_outer() {
    let rig = Rig::new("nested_error").await;

    let outer = rig.db.transaction(async || {
        rig.insert(1).await?;
        let inner = rig.db.transaction(async || rig.insert(1).await);
        assert!(inner.await.is_err());
        rig.insert(2).await
    });

    outer.await.unwrap();
    assert_eq!(rig.ids().await, [1, 2]);
}

#[tokio::test]
async fn an_outer_rollback_undoes_nested_transactions() {
    let rig = Rig::new("nested_undone").await;

    let outer = rig.db.transaction(async || {
        rig.db.transaction(async || rig.insert(1).await).await?;
        Err::<(), _>(sqlx::Error::RowNotFound)
    });

    assert!(outer.await.is_err());
    assert_eq!(rig.ids().await, [0_i32; 0]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_nested_transaction_that_is_dropped_between_statements_spares_the_outer() {
    let rig = Rig::new("nested_dropped").await;

    let outer = rig.db.transaction(async || {
        rig.insert(1).await?;
        let inner = rig.db.transaction(async || {
            rig.insert(2).await?;
            std::future::pending::<Done>().await
        });
        assert!(timeout(Duration::from_millis(300), inner).await.is_err());
        rig.insert(3).await
    });

    outer.await.unwrap();
    assert_eq!(rig.ids().await, [1, 3]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_nested_transaction_that_is_dropped_in_a_statement_is_undone_as_a_whole() {
    let rig = Rig::new("nested_cut").await;

    let outer = rig.db.transaction(async || {
        rig.insert(1).await?;
        let inner = rig.db.transaction(async || {
            rig.insert(2).await?;
            number(&rig.db, &world::slow(2)).await.map(drop)
        });
        assert!(timeout(Duration::from_millis(300), inner).await.is_err());
        rig.insert(3).await
    });
    let committed = outer.await.is_ok();

    let expected: &[i32] = if committed { &[1, 3] } else { &[] };
    assert_eq!(rig.ids().await, expected);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_transaction_of_a_transaction_is_a_savepoint() {
    let rig = Rig::new("savepoints").await;

    let mut outer = rig.db.begin().await.unwrap();
    rig.insert_on(&mut outer, 1).await.unwrap();
    let mut dropped = outer.begin().await.unwrap();
    rig.insert_on(&mut dropped, 2).await.unwrap();
    drop(dropped);
    let mut kept = outer.begin().await.unwrap();
    rig.insert_on(&mut kept, 3).await.unwrap();
    kept.commit().await.unwrap();
    outer.commit().await.unwrap();

    assert_eq!(rig.ids().await, [1, 3]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn begin_inside_an_ambient_transaction_is_a_savepoint() {
    let rig = Rig::new("hand_inside").await;

    let outer = rig.db.transaction(async || {
        rig.insert(1).await?;
        let mut inner = rig.db.begin().await?;
        rig.insert_on(&mut inner, 2).await?;
        drop(inner);
        let mut inner = rig.db.begin().await?;
        rig.insert_on(&mut inner, 3).await?;
        inner.commit().await
    });

    outer.await.unwrap();
    assert_eq!(rig.ids().await, [1, 3]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn statements_at_the_same_time_wait_for_each_other_in_their_transaction() {
    let rig = Rig::new("turns").await;

    let work = rig.db.transaction(async || {
        let all = (0..5).map(|id| rig.insert(id));
        let done = futures_util::future::join_all(all).await;
        assert!(done.iter().all(Result::is_ok), "{done:?}");
        assert_eq!(rig.db.pool().status().in_use, 1);
        Err::<(), _>(sqlx::Error::RowNotFound)
    });

    assert!(work.await.is_err());
    assert_eq!(
        rig.ids().await,
        [0_i32; 0],
        "all of them were in the transaction"
    );
}

#[tokio::test]
async fn nested_transactions_at_the_same_time_run_one_after_the_other() {
    let rig = Rig::new("nested_turns").await;
    let nested = async |id: i32, fails: bool| {
        let work = rig.db.transaction(async || {
            rig.insert(id).await?;
            tokio::task::yield_now().await;
            rig.insert(id + 10).await?;
            if fails {
                Err(sqlx::Error::RowNotFound)
            } else {
                Ok(())
            }
        });
        work.await.is_ok()
    };

    let outer = rig.db.transaction(async || {
        let ended = tokio::join!(nested(1, false), nested(2, true), nested(3, false));
        assert_eq!(ended, (true, false, true));
        Ok::<_, sqlx::Error>(())
    });

    outer.await.unwrap();
    assert_eq!(rig.ids().await, [1, 3, 11, 13]);
}

#[tokio::test]
async fn two_transactions_at_the_same_time_in_one_task_are_independent() {
    let rig = Rig::new("beside").await;

    let (kept, undone) = tokio::join!(
        rig.db.transaction(async || rig.insert(1).await),
        rig.db.transaction(async || {
            rig.insert(2).await?;
            Err::<(), _>(sqlx::Error::RowNotFound)
        }),
    );

    assert!(kept.is_ok() && undone.is_err());
    assert_eq!(rig.ids().await, [1]);
}

#[tokio::test]
async fn a_stream_kept_open_in_a_transaction_makes_the_next_statement_fail_with_the_reason() {
    let limit = Duration::from_millis(200);
    let rig = Rig::with("kept_open", |builder| builder.acquire_timeout(limit)).await;

    let work = rig.db.transaction(async || {
        let mut rows = sqlx::query(world::MANY).fetch(&rig.db);
        assert!(rows.next().await.unwrap().is_ok());
        assert!(rig.db.in_transaction());
        let error = number(&rig.db, "SELECT 1").await.unwrap_err().to_string();
        assert!(error.contains("in use"), "{error}");
        drop(rows);
        rig.insert(1).await
    });

    work.await.unwrap();
    assert_eq!(rig.ids().await, [1]);
}

#[tokio::test]
async fn a_spawned_task_is_outside_unless_it_runs_in_the_scope() {
    let rig = std::sync::Arc::new(Rig::new("handed").await);

    let outer = rig.db.transaction(async || {
        let outside = rig.clone();
        let outside = tokio::spawn(async move { outside.db.in_transaction() });
        assert!(!outside.await.unwrap());
        let (inside, scope) = (rig.clone(), Scope::current().unwrap());
        let inside = tokio::spawn(async move { scope.run(inside.insert(1)).await });
        inside.await.unwrap()?;
        Err::<(), _>(sqlx::Error::RowNotFound)
    });

    assert!(outer.await.is_err());
    assert_eq!(
        rig.ids().await,
        [0_i32; 0],
        "the insert of the task was part of the transaction"
    );
    rig.assert_clean().await;
}

#[tokio::test]
async fn nothing_is_written_outside_a_transaction_that_was_lost() {
    let rig = Rig::new("lost").await;

    let work = rig.db.transaction(async || {
        rig.insert(1).await?;
        let _ = rig.insert(1).await; // a duplicate: on some databases this fails the transaction
        let _ = rig.db.transaction(async || rig.insert(2).await).await;
        let _ = rig.insert(3).await;
        Ok::<_, sqlx::Error>(())
    });
    let committed = work.await.is_ok();

    let expected: &[i32] = if committed { &[1, 2, 3] } else { &[] };
    assert_eq!(rig.ids().await, expected);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_discarded_connection_loses_its_transaction() {
    let rig = Rig::new("discarded").await;

    let work = rig.db.transaction(async || {
        rig.insert(1).await?;
        cenote_sqlx::Lease::discard(rig.db.acquire().await?);
        assert!(rig.insert(2).await.is_err(), "the insert would be outside");
        Ok::<_, sqlx::Error>(())
    });

    assert!(work.await.is_err());
    assert_eq!(rig.ids().await, [0_i32; 0]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_stream_that_outlives_a_dropped_transaction_makes_the_outer_fail() {
    let rig = Rig::new("outlives").await;

    let outer = rig.db.transaction(async || {
        rig.insert(1).await?;
        let kept = std::cell::RefCell::new(None);
        let inner = rig.db.transaction(async || {
            rig.insert(2).await?;
            let mut rows = sqlx::query(world::MANY).fetch(&rig.db);
            assert!(rows.next().await.unwrap().is_ok());
            *kept.borrow_mut() = Some(rows);
            std::future::pending::<Done>().await
        });
        assert!(timeout(Duration::from_millis(500), inner).await.is_err());
        drop(kept);
        assert!(
            rig.insert(3).await.is_err(),
            "the state of the transaction is unknown"
        );
        Ok::<_, sqlx::Error>(())
    });

    assert!(outer.await.is_err());
    assert_eq!(rig.ids().await, [0_i32; 0]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn inside_a_transaction_of_another_database_the_outer_one_goes_on() {
    let (rig, other) = (Rig::new("two_outer").await, Rig::new("two_inner").await);

    let outer = rig.db.transaction(async || {
        let inner = other.db.transaction(async || {
            other.insert(1).await?;
            rig.insert(2).await
        });
        inner.await?;
        assert_eq!(rig.ids().await, [2], "the row is in the outer transaction");
        Err::<(), _>(sqlx::Error::RowNotFound)
    });

    assert!(matches!(outer.await, Err(sqlx::Error::RowNotFound)));
    assert_eq!(
        rig.ids().await,
        [] as [i32; 0],
        "the outer transaction was rolled back"
    );
    assert_eq!(other.ids().await, [1], "the inner one was committed");
    rig.assert_clean().await;
    other.assert_clean().await;
}
