//! Entities, on the handle and in a transaction, and the labels of their statements.

use sea_orm::{ConnectionTrait, EntityTrait, TransactionTrait};

use super::Rig;
use crate::bakery::{cake, cakes, day};

const NONE: [&str; 0] = [];

#[tokio::test]
async fn entities_are_written_found_paginated_and_streamed_on_the_handle() {
    let rig = Rig::new("entities").await;

    day(&rig.db).await.unwrap();

    assert_eq!(rig.db.pool().status().in_use, 0);
    assert_eq!(rig.cakes().await, ["b", "z"]);
}

#[tokio::test]
async fn entities_are_written_found_paginated_and_streamed_in_a_transaction() {
    let rig = Rig::new("in_transaction").await;

    let transaction = TransactionTrait::begin(&rig.db).await.unwrap();
    let nested = transaction.begin().await.unwrap();
    day(&nested).await.unwrap();
    nested.commit().await.unwrap();
    assert_eq!(cakes(&transaction).await.unwrap(), ["b", "z"]);
    assert_eq!(rig.cakes().await, NONE, "not committed yet");
    transaction.rollback().await.unwrap();

    assert_eq!(rig.cakes().await, NONE);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_future_of_entities_can_be_spawned() {
    let rig = Rig::new("spawned").await;
    let db = rig.db.clone();

    let spawned = tokio::spawn(async move {
        let work = async |transaction: &cenote_sqlx::OrmTransaction| day(transaction).await;
        let transaction = TransactionTrait::begin(&db).await?;
        work(&transaction).await?;
        transaction.commit().await
    });

    spawned.await.unwrap().unwrap();
    assert_eq!(rig.cakes().await, ["b", "z"]);
}

#[tokio::test]
async fn several_statements_of_one_text_run_without_parameters() {
    let rig = Rig::new("texts").await;

    let text = "INSERT INTO cakes (name) VALUES ('a'); INSERT INTO cakes (name) VALUES ('b')";
    rig.db.execute_unprepared(text).await.unwrap();

    assert_eq!(rig.cakes().await, ["a", "b"]);
}

#[tokio::test]
async fn a_lease_is_labelled_with_the_statement_and_a_transaction_has_its_line() {
    let rig = Rig::new("labels").await;
    rig.bake("a").await.unwrap();

    let rows = cake::Entity::find().stream(&rig.db).await.unwrap();
    let held = rig.db.pool().leases();
    drop(rows);
    let line = line!() + 1;
    let transaction = TransactionTrait::begin(&rig.db).await.unwrap();
    let begun = rig.db.pool().leases();
    cakes(&transaction).await.unwrap();
    let used = rig.db.pool().leases();

    let label = held[0].label.as_deref().unwrap();
    assert!(
        label.starts_with("SELECT") && label.contains("cakes"),
        "{label}"
    );
    assert_eq!(
        (begun[0].site.file(), begun[0].site.line()),
        (file!(), line)
    );
    assert_eq!(begun[0].label.as_deref(), Some("transaction"));
    let label = used[0].label.as_deref().unwrap();
    assert!(
        label.starts_with("SELECT") && label.contains("cakes"),
        "{label}"
    );
}
