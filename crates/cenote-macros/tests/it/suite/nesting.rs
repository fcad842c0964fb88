//! Transactional functions inside transactions.

use cenote_sqlx::transactional;
use tokio::sync::Notify;

use super::{Done, Problem, Rig};

fn sold_out(yes: bool) -> Result<(), Problem> {
    if yes { Err(Problem::SoldOut) } else { Ok(()) }
}

#[transactional(rig.db)]
async fn part(rig: &Rig, id: i32, fails: bool) -> Result<(), Problem> {
    rig.insert(id).await?;
    sold_out(fails)
}

#[transactional(rig.db, nested = join)]
async fn joined_part(rig: &Rig, id: i32, fails: bool) -> Result<(), Problem> {
    rig.insert(id).await?;
    sold_out(fails)
}

#[tokio::test]
async fn a_nested_function_that_fails_undoes_its_own_part() {
    #[transactional(rig.db)]
    async fn whole(rig: &Rig) -> Result<(), Problem> {
        rig.insert(1).await?;
        assert!(part(rig, 2, true).await.is_err());
        part(rig, 3, false).await
    }
    let rig = Rig::new("savepoint").await;

    whole(&rig).await.unwrap();

    assert_eq!(rig.ids().await, [1, 3]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn the_option_nested_savepoint_is_the_default() {
    #[transactional(rig.db, nested = savepoint)]
    async fn part(rig: &Rig) -> Result<(), Problem> {
        rig.insert(2).await?;
        Err(Problem::SoldOut)
    }
    let rig = Rig::new("by_name").await;

    let whole = rig.db.transaction(async || {
        rig.insert(1).await?;
        assert!(part(&rig).await.is_err());
        Ok::<_, sqlx::Error>(())
    });

    whole.await.unwrap();
    assert_eq!(rig.ids().await, [1]);
}

#[tokio::test]
async fn an_outer_function_that_fails_undoes_all() {
    #[transactional(rig.db)]
    async fn whole(rig: &Rig) -> Result<(), Problem> {
        part(rig, 1, false).await?;
        joined_part(rig, 2, false).await?;
        rig.insert(3).await?;
        Err(Problem::SoldOut)
    }
    let rig = Rig::new("outer").await;

    assert!(whole(&rig).await.is_err());

    assert!(rig.ids().await.is_empty());
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_joined_function_that_fails_undoes_nothing_by_itself() {
    #[transactional(rig.db)]
    async fn whole(rig: &Rig) -> Result<(), Problem> {
        rig.insert(1).await?;
        assert!(joined_part(rig, 2, true).await.is_err());
        joined_part(rig, 3, false).await
    }
    let rig = Rig::new("join").await;

    whole(&rig).await.unwrap();

    assert_eq!(rig.ids().await, [1, 2, 3]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_function_that_could_join_begins_a_transaction_where_there_is_none() {
    let rig = Rig::new("alone").await;

    assert!(joined_part(&rig, 1, true).await.is_err());
    joined_part(&rig, 2, false).await.unwrap();

    assert_eq!(rig.ids().await, [2]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_transaction_of_another_database_is_not_joined() {
    let (rig, other) = (Rig::new("this").await, Rig::new("other").await);

    let failed: Done = other
        .db
        .transaction(async || {
            other.insert(1).await?;
            joined_part(&rig, 2, false).await.unwrap();
            Err(sqlx::Error::RowNotFound)
        })
        .await;

    assert!(failed.is_err());
    assert!(other.ids().await.is_empty());
    assert_eq!(rig.ids().await, [2]);
}

#[tokio::test]
async fn a_nested_function_that_is_dropped_undoes_its_own_part() {
    #[transactional(rig.db)]
    async fn hang(rig: &Rig, inserted: &Notify) -> Done {
        rig.insert(2).await?;
        inserted.notify_one();
        std::future::pending().await
    }
    #[transactional(rig.db)]
    async fn whole(rig: &Rig) -> Done {
        rig.insert(1).await?;
        let inserted = Notify::new();
        tokio::select! {
            end = hang(rig, &inserted) => panic!("the function ended: {end:?}"),
            () = inserted.notified() => {}
        }
        rig.insert(3).await
    }
    let rig = Rig::new("nested_dropped").await;

    whole(&rig).await.unwrap();

    assert_eq!(rig.ids().await, [1, 3]);
    rig.assert_clean().await;
}
