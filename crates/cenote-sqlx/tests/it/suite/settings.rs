//! Settings that are changed while the handle lives.

use cenote_sqlx::Lease;
use futures_util::future::join_all;

use super::world::DB;
use super::{Rig, number, world};

async fn value(lease: &mut Lease<DB>) -> i64 {
    let asked = sqlx::query_scalar(world::SETTING).fetch_one(lease);
    asked.await.unwrap()
}

#[tokio::test]
async fn a_changed_setting_reaches_every_connection_before_its_next_use() {
    let rig = Rig::with("set", |builder| builder.setting(world::setting(7001))).await;
    let db = &rig.db;
    let mut lent = db.acquire().await.unwrap();
    drop(join_all([db.acquire(), db.acquire()]).await);
    assert_eq!(value(&mut lent).await, 7001);

    db.set(world::setting(7002)).await.unwrap();

    assert_eq!(value(&mut lent).await, 7002, "a lent connection");
    let mut all = vec![lent];
    while all.len() < 4 {
        let mut lease = db.acquire().await.unwrap();
        assert_eq!(value(&mut lease).await, 7002, "connection {}", all.len());
        all.push(lease);
    }
    drop(all);
    assert_eq!(
        db.pool().status().closes.total(),
        0,
        "the connections are kept"
    );
    // A reset must not bring the old value back.
    rig.run_alone(world::CHANGE).await;
    assert_eq!(number(db, world::SETTING).await.unwrap(), 7002);
}

#[tokio::test]
async fn a_setting_that_fails_changes_nothing() {
    let rig = Rig::with("set_wrong", |builder| builder.setting(world::setting(7001))).await;

    assert!(rig.db.set("SELEKT 1").await.is_err());

    assert_eq!(number(&rig.db, world::SETTING).await.unwrap(), 7001);
    rig.db.pool().invalidate();
    assert_eq!(number(&rig.db, world::SETTING).await.unwrap(), 7001);
}

#[tokio::test]
async fn a_setting_that_is_changed_in_a_transaction_outlives_its_rollback() {
    let rig = Rig::with("set_inside", |builder| builder.max_size(1)).await;
    let db = &rig.db;
    let before = number(db, world::SETTING).await.unwrap();

    let rolled_back = db.transaction(async || {
        rig.insert(1).await?;
        db.set(world::setting(7003)).await?;
        assert_eq!(number(db, world::SETTING).await?, before);
        Err::<(), _>(sqlx::Error::RowNotFound)
    });
    assert!(rolled_back.await.is_err());

    assert_eq!(number(db, world::SETTING).await.unwrap(), 7003);
    assert_eq!(rig.ids().await, [0; 0]);
}

#[tokio::test]
async fn no_statement_after_a_change_finds_the_old_value() {
    let rig = Rig::new("set_load").await;
    let db = &rig.db;
    for value in 7100..7120 {
        let asks = || async { number(db, world::SETTING).await.unwrap() };
        let (set, _) = tokio::join!(
            db.set(world::setting(value)),
            join_all((0..8).map(|_| asks()))
        );
        set.unwrap();

        let seen = join_all((0..8).map(|_| asks())).await;

        assert_eq!(seen, [i64::from(value); 8]);
    }
}
