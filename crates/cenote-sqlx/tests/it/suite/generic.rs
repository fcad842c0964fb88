//! Code that is generic over sqlx's traits. The expansion of sqlx's checked macros is such code.

use sqlx::{Acquire, Executor, FromRow, Row};

use super::{DB, Rig};

#[derive(Debug, PartialEq, FromRow)]
struct Account {
    id: i32,
    amount: i64,
}

/// Reads a row like `query_as!(Account, "..", id)`. The macro itself would need a database at
/// compile time.
async fn account<'e>(
    rig: &Rig,
    id: i32,
    executor: impl Executor<'e, Database = DB>,
) -> Result<Account, sqlx::Error> {
    let sql = rig.sql("SELECT id, amount FROM {} WHERE id = ?");
    let query = sqlx::query(sql).bind(id);
    let mapped = query.try_map(|row: <DB as sqlx::Database>::Row| {
        Ok(Account {
            id: row.try_get_unchecked(0)?,
            amount: row.try_get_unchecked(1)?,
        })
    });
    mapped.fetch_one(executor).await
}

async fn add<'a>(rig: &Rig, place: impl Acquire<'a, Database = DB>) -> Result<(), sqlx::Error> {
    let mut connection = place.acquire().await?;
    let sql = rig.sql("UPDATE {} SET amount = amount + 1");
    sqlx::query(sql).execute(&mut *connection).await.map(drop)
}

#[tokio::test]
async fn the_code_of_a_checked_macro_takes_the_handle_a_lease_and_a_transaction() {
    let rig = Rig::new("macros").await;
    rig.insert(1).await.unwrap();
    let expected = Account { id: 1, amount: 1 };

    let mut lease = rig.db.acquire().await.unwrap();
    let mut transaction = rig.db.begin().await.unwrap();
    let seen = [
        account(&rig, 1, &rig.db).await.unwrap(),
        account(&rig, 1, &mut lease).await.unwrap(),
        account(&rig, 1, &mut *lease).await.unwrap(),
        account(&rig, 1, &mut transaction).await.unwrap(),
        account(&rig, 1, &mut *transaction).await.unwrap(),
    ];

    assert!(seen.iter().all(|seen| *seen == expected), "{seen:?}");
    let sql = rig.sql("SELECT id, amount FROM {}");
    let derived: Account = sqlx::query_as(sql)
        .fetch_one(&mut transaction)
        .await
        .unwrap();
    assert_eq!(derived, expected);
    transaction.commit().await.unwrap();
    drop(lease);
    rig.assert_clean().await;
}

#[tokio::test]
async fn code_that_is_generic_over_acquire_takes_the_handle_a_lease_and_a_transaction() {
    let rig = Rig::new("acquires").await;
    rig.insert(1).await.unwrap();

    add(&rig, &rig.db).await.unwrap();
    let mut lease = rig.db.acquire().await.unwrap();
    add(&rig, &mut lease).await.unwrap();
    drop(lease);
    let mut transaction = rig.db.begin().await.unwrap();
    add(&rig, &mut transaction).await.unwrap();
    transaction.commit().await.unwrap();

    let seen = account(&rig, 1, &rig.db).await.unwrap();
    assert_eq!(seen.amount, 4);
    rig.assert_clean().await;
}
