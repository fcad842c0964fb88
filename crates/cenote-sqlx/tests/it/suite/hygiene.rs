//! No state of a session is left for its next user.

use cenote_sqlx::Reset;

use super::world;
use super::{Rig, number};

#[tokio::test]
async fn a_transaction_begun_by_raw_sql_is_rolled_back_before_the_next_use() {
    let rig = Rig::with("raw_begin", |builder| builder.max_size(1)).await;
    for begin in ["BEGIN", "/* by hand */ begin", "-- by hand\nBEGIN"] {
        let text = format!("{begin}; INSERT INTO {{}} (id, amount) VALUES (1, 1)");

        rig.run_alone(&text).await;

        assert_eq!(rig.ids().await, [0_i32; 0], "{begin}");
    }
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_transaction_left_open_on_the_raw_connection_is_rolled_back() {
    let rig = Rig::with("foreign", |builder| builder.max_size(1)).await;
    let insert = rig.sql("INSERT INTO {} (id, amount) VALUES (1, 1)");

    let mut lease = rig.db.acquire().await.unwrap();
    sqlx::raw_sql("BEGIN").execute(&mut *lease).await.unwrap();
    sqlx::raw_sql(insert).execute(&mut *lease).await.unwrap();
    drop(lease);

    assert_eq!(rig.ids().await, [0_i32; 0]);
}

#[tokio::test]
async fn a_failed_transaction_that_was_left_open_is_rolled_back() {
    let rig = Rig::with("failed", |builder| builder.max_size(1)).await;

    rig.run_alone("BEGIN; INSERT INTO {} (id, amount) VALUES (1, 1)")
        .await;
    let mut lease = rig.db.acquire().await.unwrap();
    sqlx::raw_sql("BEGIN").execute(&mut lease).await.unwrap();
    let wrong = sqlx::raw_sql("SELECT nothing FROM nowhere")
        .execute(&mut lease)
        .await;
    assert!(wrong.is_err());
    drop(lease);

    assert_eq!(rig.ids().await, [0_i32; 0]);
    rig.insert(2).await.unwrap();
    assert_eq!(rig.ids().await, [2]);
}

#[tokio::test]
async fn a_changed_session_is_reset_or_closed_before_its_next_use() {
    let rig = Rig::with("changed", |builder| builder.max_size(1)).await;
    for (change, seen) in world::LEFT {
        let mut lease = rig.db.acquire().await.unwrap();
        let text = sqlx::raw_sql(world::sql(change));
        text.execute(&mut lease).await.unwrap();
        let there = sqlx::query_scalar::<_, i64>(world::sql(seen));
        let there = there.fetch_one(&mut lease).await.unwrap();
        assert_eq!(there, 1, "{change} changes nothing");
        drop(lease);

        assert_eq!(number(&rig.db, seen).await.unwrap(), 0, "{change}");
    }
    if world::RESETS {
        assert_eq!(rig.db.pool().status().opened, 1, "the connection is kept");
    }
}

#[tokio::test]
async fn a_changed_session_stays_with_its_scope() {
    let rig = Rig::with("scoped", |builder| builder.max_size(2)).await;

    cenote::scope(async {
        rig.run(world::CHANGE).await;
        assert_eq!(number(&rig.db, world::CHANGED).await.unwrap(), 1);
        let work = rig
            .db
            .transaction(async || number(&rig.db, world::CHANGED).await);
        assert_eq!(
            work.await.unwrap(),
            1,
            "a transaction uses the same connection"
        );
        assert_eq!(number(&rig.db, world::CHANGED).await.unwrap(), 1);
    })
    .await;

    rig.assert_clean().await;
}

#[tokio::test]
async fn in_a_scope_a_clean_connection_goes_back_after_each_statement() {
    let rig = Rig::new("goes_back").await;

    cenote::scope(async {
        rig.insert(1).await.unwrap();
        assert_eq!(rig.db.pool().status().in_use, 0);
        assert_eq!(rig.ids().await, [1]);
        rig.run("BEGIN").await;
        assert_ne!(
            rig.db.pool().status().in_use,
            0,
            "an open transaction keeps its connection"
        );
        rig.insert(2).await.unwrap();
    })
    .await;

    assert_eq!(rig.ids().await, [1]);
}

#[tokio::test]
async fn reset_never_leaves_state_but_no_transaction() {
    let rig = Rig::with("never", |builder| builder.max_size(1).reset(Reset::Never)).await;

    rig.run(world::CHANGE).await;
    assert_eq!(number(&rig.db, world::CHANGED).await.unwrap(), 1);
    rig.run_alone("BEGIN; INSERT INTO {} (id, amount) VALUES (1, 1)")
        .await;

    assert_eq!(rig.ids().await, [0_i32; 0]);
}

#[tokio::test]
async fn a_reset_query_is_run_after_each_use_and_must_succeed() {
    let good = Rig::with("query", |builder| {
        builder.max_size(1).reset(Reset::Query("SELECT 1".into()))
    })
    .await;
    good.insert(1).await.unwrap();
    assert_eq!(good.ids().await, [1]);
    assert_eq!(good.db.pool().status().opened, 1);

    let (builder, _home) = world::builder();
    let bad = builder
        .max_size(1)
        .reset(Reset::Query("SELECT wrong".into()))
        .build()
        .unwrap();
    for _ in 0..2 {
        sqlx::query("SELECT 1").execute(&bad).await.unwrap();
    }
    assert_eq!(
        bad.pool().status().opened,
        2,
        "a reset that fails closes its connection"
    );
}

#[tokio::test]
async fn settings_of_the_builder_are_applied_again_after_a_reset() {
    let rig = Rig::with("settings", |builder| {
        builder.max_size(1).setting(world::CHANGE)
    })
    .await;
    assert_eq!(number(&rig.db, world::CHANGED).await.unwrap(), 1);

    rig.run_alone("BEGIN").await;
    let mut lease = rig.db.acquire().await.unwrap();
    sqlx::query("SELECT 1").execute(&mut *lease).await.unwrap();
    drop(lease);

    assert_eq!(number(&rig.db, world::CHANGED).await.unwrap(), 1);
}
