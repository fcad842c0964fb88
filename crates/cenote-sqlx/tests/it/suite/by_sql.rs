//! Transactions that SQL text begins and ends.

use cenote::scope;

use super::Rig;
use super::world;

#[tokio::test]
async fn a_transaction_begun_by_sql_lasts_until_sql_ends_it() {
    let rig = Rig::new("known").await;
    assert!(!rig.db.in_transaction());

    scope(async {
        for end in ["COMMIT", "ROLLBACK"] {
            for begin in world::BEGINS {
                rig.run(begin).await;
                assert!(rig.db.in_transaction(), "{begin}");
                rig.insert(1).await.unwrap();
                assert!(rig.db.in_transaction(), "{begin}");
                rig.run("SAVEPOINT a; ROLLBACK TO SAVEPOINT a").await;
                assert!(rig.db.in_transaction(), "{begin}");
                rig.run(end).await;
                assert!(!rig.db.in_transaction(), "{begin} {end}");
                rig.run("DELETE FROM {}").await;
            }
        }
        rig.run("BEGIN; INSERT INTO {} (id, amount) VALUES (2, 1); COMMIT")
            .await;
        assert!(!rig.db.in_transaction());
    })
    .await;

    assert!(!rig.db.in_transaction());
    assert_eq!(rig.ids().await, [2]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_transaction_begun_by_sql_ends_with_its_scope() {
    let rig = Rig::with("over", |builder| builder.max_size(1)).await;

    scope(async {
        rig.run("BEGIN").await;
        rig.insert(1).await.unwrap();
        assert!(rig.db.in_transaction());
    })
    .await;

    scope(async {
        assert!(!rig.db.in_transaction());
        assert_eq!(rig.ids().await, [0_i32; 0]);
        assert!(!rig.db.in_transaction());
    })
    .await;
}

#[tokio::test]
async fn a_transaction_inside_one_begun_by_sql_is_refused_and_changes_nothing() {
    let rig = Rig::new("refused").await;

    scope(async {
        rig.run("BEGIN").await;
        rig.insert(1).await.unwrap();
        let inner = rig.db.transaction(async || rig.insert(2).await);
        let error = inner.await.unwrap_err().to_string();
        assert!(error.contains("begin it with `Db::begin`"), "{error}");
        assert!(rig.db.begin().await.is_err());
        rig.run("ROLLBACK").await;
        let after = rig.db.transaction(async || rig.insert(3).await);
        after.await.unwrap();
    })
    .await;

    assert_eq!(rig.ids().await, [3], "neither of the others was committed");
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_transaction_begun_by_a_text_that_fails_can_be_rolled_back() {
    let rig = Rig::with("half_begun", |builder| builder.max_size(1)).await;

    scope(async {
        let text =
            rig.sql("BEGIN; INSERT INTO {} (id, amount) VALUES (1, 1); SELECT * FROM nowhere");
        sqlx::raw_sql(text).execute(&rig.db).await.unwrap_err();
        assert!(rig.db.in_transaction());
        rig.run("ROLLBACK").await;
        assert!(!rig.db.in_transaction());
    })
    .await;

    assert_eq!(rig.ids().await, [0_i32; 0]);
    rig.assert_clean().await;
}
