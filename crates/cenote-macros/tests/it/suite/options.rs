//! Each option of the attribute.

use std::sync::atomic::{AtomicU32, Ordering};

use cenote_sqlx::{Isolation, Retry, transactional};

use super::{Done, Problem, Rig};

#[tokio::test]
async fn a_read_only_function_reads_and_cannot_write() {
    #[transactional(rig.db, read_only)]
    async fn read(rig: &Rig) -> Result<Vec<i32>, sqlx::Error> {
        assert!(rig.db.in_transaction());
        Ok(rig.ids().await)
    }
    #[transactional(rig.db, read_only)]
    async fn write(rig: &Rig) -> Done {
        rig.insert(2).await
    }
    let rig = Rig::new("read_only").await;
    rig.insert(1).await.unwrap();

    let refused = write(&rig).await.unwrap_err();

    assert!(refused.as_database_error().is_some(), "{refused}");
    assert_eq!(read(&rig).await.unwrap(), [1]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn every_isolation_level_can_be_asked_for() {
    #[transactional(rig.db, isolation = ReadUncommitted)]
    async fn first(rig: &Rig) -> Done {
        rig.insert(1).await
    }
    #[transactional(rig.db, isolation = ReadCommitted)]
    async fn second(rig: &Rig) -> Done {
        rig.insert(2).await
    }
    #[transactional(isolation = Isolation::RepeatableRead, rig.db)]
    async fn third(rig: &Rig) -> Done {
        rig.insert(3).await
    }
    #[transactional(rig.db, isolation = Serializable,)]
    async fn fourth(rig: &Rig) -> Done {
        rig.insert(4).await
    }
    let rig = Rig::new("isolation").await;
    let _ = Isolation::Serializable;

    first(&rig).await.unwrap();
    second(&rig).await.unwrap();
    third(&rig).await.unwrap();
    fourth(&rig).await.unwrap();

    assert_eq!(rig.ids().await, [1, 2, 3, 4]);
    rig.assert_clean().await;
}

#[transactional(rig.db, retry)]
async fn count_and_insert(rig: &Rig, tries: &AtomicU32, id: i32) -> Result<(), Problem> {
    tries.fetch_add(1, Ordering::Relaxed);
    rig.insert(id).await?;
    Ok(())
}

#[tokio::test]
async fn a_function_with_retry_runs_once_without_a_conflict() {
    let rig = Rig::new("retry_once").await;
    let tries = AtomicU32::new(0);

    count_and_insert(&rig, &tries, 1).await.unwrap();
    assert_eq!(tries.load(Ordering::Relaxed), 1);

    let error = count_and_insert(&rig, &tries, 1).await.unwrap_err();
    assert!(matches!(error, Problem::Database(_)), "{error:?}");
    assert_eq!(
        tries.load(Ordering::Relaxed),
        2,
        "a duplicate key is no conflict, so there is no second try"
    );
    assert_eq!(rig.ids().await, [1]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_function_with_retry_takes_arguments_that_are_not_clone() {
    /// Neither `Clone` nor `Copy`.
    struct Order {
        ids: Vec<i32>,
    }
    #[transactional(rig.db, retry = Retry { attempts: 2, ..Retry::default() })]
    async fn place(rig: &Rig, order: Order, log: &mut Vec<i32>) -> Result<usize, Problem> {
        for id in &order.ids {
            rig.insert(*id).await?;
            log.push(*id);
        }
        Ok(order.ids.len())
    }
    let rig = Rig::new("retry_look").await;
    let mut log = Vec::new();

    let placed = place(&rig, Order { ids: vec![1, 2] }, &mut log).await;

    assert_eq!(placed.unwrap(), 2);
    assert_eq!(log, rig.ids().await);
}
