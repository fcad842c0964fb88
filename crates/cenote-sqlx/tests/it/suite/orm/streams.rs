//! Row streams: they hold the connection, and give it back.

use std::pin::pin;
use std::time::Duration;

use cenote_sqlx::OrmError;
use futures_util::TryStreamExt;
use sea_orm::{
    ConnectionTrait, DbErr, EntityTrait, QueryResult, Statement, StreamTrait, TransactionTrait,
};
use tokio::time::timeout;

use super::{Rig, world};
use crate::bakery::{bake, cake, cakes};

fn many(db: &impl ConnectionTrait) -> Statement {
    Statement::from_string(db.get_database_backend(), world::MANY)
}

/// Reads this many rows, and drops the stream.
async fn some(db: &(impl ConnectionTrait + StreamTrait), count: usize) -> Result<(), DbErr> {
    let mut rows = pin!(db.stream_raw(many(db)).await?);
    for _ in 0..count {
        let row: QueryResult = rows.try_next().await?.expect("there are many rows");
        assert!(row.try_get_by_index::<i64>(0)? > 0);
    }
    Ok(())
}

#[tokio::test]
async fn a_stream_holds_its_connection_until_it_is_dropped() {
    let rig = Rig::with("stream_held", |builder| builder.max_size(1)).await;

    let rows = rig.db.stream_raw(many(&rig.db)).await.unwrap();
    assert_eq!(rig.db.pool().status().in_use, 1);
    drop(rows);

    for count in [0, 1, 50] {
        some(&rig.db, count).await.unwrap();
        rig.bake(&count.to_string()).await.unwrap();
    }
    assert_eq!(rig.cakes().await, ["0", "1", "50"]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_stream_that_is_read_to_its_end_gives_its_connection_back_at_once() {
    let rig = Rig::new("stream_read").await;
    rig.bake("a").await.unwrap();

    let mut rows = cake::Entity::find().stream(&rig.db).await.unwrap();
    assert_eq!(rows.try_next().await.unwrap().unwrap().name, "a");
    assert_eq!(rows.try_next().await.unwrap(), None);

    assert_eq!(rig.db.pool().status().in_use, 0);
    assert_eq!(rows.try_next().await.unwrap(), None, "it stays at its end");
}

#[tokio::test]
async fn a_stream_reads_its_own_transaction_which_goes_on_after_an_early_drop() {
    let rig = Rig::new("stream_inside").await;
    let transaction = TransactionTrait::begin(&rig.db).await.unwrap();
    bake(&transaction, "a").await.unwrap();

    let mut rows = cake::Entity::find().stream(&transaction).await.unwrap();
    assert_eq!(rows.try_next().await.unwrap().unwrap().name, "a");
    let waiting = timeout(Duration::from_millis(50), cakes(&transaction)).await;
    assert!(waiting.is_err(), "the connection is in use");
    drop(rows);
    some(&transaction, 3).await.unwrap();
    bake(&transaction, "b").await.unwrap();
    transaction.commit().await.unwrap();

    assert_eq!(rig.cakes().await, ["a", "b"]);
    rig.assert_clean().await;
}

/// It used to wait for ever.
#[tokio::test]
async fn a_statement_beside_an_open_stream_of_its_transaction_fails_after_the_timeout() {
    let limit = Duration::from_secs(1);
    let rig = Rig::new("stream_beside").await;
    let impatient = rig.db.within(limit);
    let transaction = TransactionTrait::begin(&impatient).await.unwrap();
    bake(&transaction, "a").await.unwrap();
    let mut rows = cake::Entity::find().stream(&transaction).await.unwrap();
    rows.try_next().await.unwrap().unwrap();

    let refused = cakes(&transaction).await.unwrap_err();

    let told = refused.to_string();
    assert!(matches!(refused, DbErr::Conn(_)), "{told}");
    assert!(told.contains("streams.rs"), "{told}");
    assert!(told.contains("read the stream to its end"), "{told}");
    drop(rows);
    transaction.commit().await.unwrap();
    assert_eq!(rig.cakes().await, ["a"]);
}

#[tokio::test]
async fn a_stream_on_the_handle_is_part_of_an_ambient_transaction() {
    let rig = Rig::new("stream_ambient").await;

    let work = rig.db.transaction(async || {
        rig.bake("a").await?;
        let rows = cake::Entity::find().stream(&rig.db).await?;
        let rows: Vec<cake::Model> = rows.try_collect().await?;
        assert_eq!(rows.len(), 1);
        some(&rig.db, 2).await?;
        rig.bake("b").await?;
        Ok::<_, OrmError>(())
    });

    work.await.unwrap();
    assert_eq!(rig.cakes().await, ["a", "b"]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn an_error_before_the_first_row_comes_from_the_call() {
    let rig = Rig::new("stream_fails").await;
    let backend = ConnectionTrait::get_database_backend(&rig.db);

    let wrong = Statement::from_string(backend, "SELECT * FROM no_such_table");
    let refused = rig.db.stream_raw(wrong).await.map(drop);

    assert!(matches!(refused, Err(DbErr::Query(_))), "{refused:?}");
    assert_eq!(rig.db.pool().status().in_use, 0);
}
