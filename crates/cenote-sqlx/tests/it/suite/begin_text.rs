//! Transactions that a text begins.

use sqlx::Error;

use super::{Rig, world};

#[tokio::test]
async fn a_text_begins_a_transaction() {
    let rig = Rig::new("begin_text").await;
    let texts = world::BEGINS.iter().chain([&world::SPECIAL]);
    for (id, text) in (1..).zip(texts) {
        let writes = *text != world::SPECIAL || !text.contains("READ ONLY");

        let mut transaction = rig.db.begin_with(*text).await.unwrap();
        let inserted = rig.insert_on(&mut transaction, id).await;
        transaction.rollback().await.unwrap();

        assert_eq!(inserted.is_ok(), writes, "{text}: {inserted:?}");
        assert_eq!(rig.ids().await, [0; 0], "{text} began no transaction");
    }
    let work = async || {
        assert!(rig.db.in_transaction());
        rig.ids().await;
        Ok::<_, Error>(())
    };
    rig.db.transaction_with(world::SPECIAL, work).await.unwrap();
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_text_that_does_not_begin_a_transaction_is_refused() {
    let rig = Rig::new("begin_text_refused").await;
    let texts = [
        "SELECT 1",
        "COMMIT",
        "",
        "BEGIN; COMMIT",
        "BEGIN; SELECT 1",
        "-- BEGIN",
        "'BEGIN'",
    ];
    for text in texts {
        let opened = rig.db.pool().status().in_use;

        let error = rig.db.begin_with(text).await.unwrap_err();

        assert!(
            matches!(error, Error::InvalidArgument(_)),
            "{text}: {error}"
        );
        assert_eq!(rig.db.pool().status().in_use, opened);
    }
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_text_cannot_begin_a_savepoint() {
    let rig = Rig::new("begin_text_nested").await;

    let nested = rig.db.transaction(async || {
        rig.insert(1).await?;
        let error = rig.db.begin_with(world::SPECIAL).await.unwrap_err();
        assert!(matches!(error, Error::InvalidSavePointStatement), "{error}");
        rig.insert(2).await
    });
    nested.await.unwrap();

    assert_eq!(rig.ids().await, [1, 2]);
}
