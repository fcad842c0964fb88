//! Errors, as SeaORM's code expects them.

use std::time::Duration;

use cenote::AcquireError;
use cenote::scope::BindError;
use cenote_sqlx::{is_timeout, pool_error};
use sea_orm::{
    ConnAcquireErr, ConnectionTrait, DbErr, EntityTrait, RuntimeErr, SqlErr, TransactionTrait,
};

use super::Rig;
use crate::bakery::{bake, cake, top};

/// Returns the errors of all ways to ask for a connection.
async fn all_ways(rig: &Rig) -> Vec<DbErr> {
    let begun = TransactionTrait::begin(&rig.db).await;
    let streamed = cake::Entity::find().stream(&rig.db).await.map(drop);
    let written = rig.db.execute_unprepared("DELETE FROM cakes").await;
    vec![
        cake::Entity::find().all(&rig.db).await.unwrap_err(),
        cake::Entity::find().one(&rig.db).await.unwrap_err(),
        rig.bake("a").await.unwrap_err(),
        begun.unwrap_err(),
        streamed.unwrap_err(),
        written.unwrap_err(),
    ]
}

#[tokio::test]
async fn a_timeout_is_an_error_of_the_connection_that_names_the_holders() {
    let limit = Duration::from_millis(100);
    let rig = Rig::with("err_timeout", |builder| builder.max_size(1)).await;
    let held = TransactionTrait::begin(&rig.db).await.unwrap();
    bake(&held, "a").await.unwrap();
    let rig = Rig {
        db: rig.db.within(limit),
        ..rig
    };

    for error in all_ways(&rig).await {
        let text = error.to_string();
        assert!(
            text.contains("of it in statements (") && text.contains("cakes"),
            "{text}"
        );
        assert!(text.contains("errors.rs"), "{text}");
        let DbErr::Conn(RuntimeErr::SqlxError(inner)) = error else {
            panic!("not an error of the connection: {error:?}");
        };
        assert!(is_timeout(&inner));
        let Some(BindError::Acquire(AcquireError::TimedOut(seen))) = pool_error(&inner) else {
            panic!("no report: {inner:?}");
        };
        assert_eq!(seen.holders().len(), 1);
    }

    held.rollback().await.unwrap();
    assert!(rig.cakes().await.is_empty());
}

#[tokio::test]
async fn a_closed_pool_is_a_closed_connection() {
    let rig = Rig::new("err_closed").await;
    rig.db.close().await;

    for error in all_ways(&rig).await {
        let closed = DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed);
        assert_eq!(error, closed);
    }
}

/// Asserts what a violated constraint is, on any connection.
async fn violate(db: &impl ConnectionTrait) {
    let twice = bake(db, "a").await.unwrap_err();
    let unique = twice.sql_err();
    assert!(
        matches!(unique, Some(SqlErr::UniqueConstraintViolation(_))),
        "{twice:?}"
    );
}

#[tokio::test]
async fn a_violated_constraint_is_told_apart() {
    let rig = Rig::new("err_constraint").await;
    rig.bake("a").await.unwrap();

    violate(&rig.db).await;
    let transaction = TransactionTrait::begin(&rig.db).await.unwrap();
    violate(&transaction).await;
    drop(transaction);
    let orphan = top(&rig.db, 815).await.unwrap_err();

    let foreign = orphan.sql_err();
    assert!(
        matches!(foreign, Some(SqlErr::ForeignKeyConstraintViolation(_))),
        "{orphan:?}"
    );
    assert_eq!(rig.cakes().await, ["a"]);
}

#[tokio::test]
async fn a_wrong_statement_is_the_error_that_seaorm_has_for_it() {
    let rig = Rig::new("err_statement").await;

    let asked = rig.db.query_one_raw(sea_orm::Statement::from_string(
        rig.db.get_database_backend(),
        "SELEKT 1",
    ));
    let asked = asked.await.unwrap_err();
    let written = rig.db.execute_unprepared("SELEKT 1").await.unwrap_err();

    assert!(matches!(asked, DbErr::Query(_)), "{asked:?}");
    assert!(matches!(written, DbErr::Exec(_)), "{written:?}");
    assert_eq!((asked.sql_err(), written.sql_err()), (None, None));
}

#[tokio::test]
async fn a_text_that_would_be_undone_at_once_is_refused() {
    let rig = Rig::new("err_undone").await;

    let begun = rig.db.execute_unprepared("BEGIN").await.unwrap_err();

    assert!(begun.to_string().contains("rolled back"), "{begun}");
    rig.assert_clean().await;
}
