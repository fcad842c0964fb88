//! Rocket closes the pool when it shuts down.

use crate::client::until;
use crate::rig::Rig;
use crate::server::{config_of, serve};

#[tokio::test]
async fn a_shutdown_closes_the_pool() {
    let rig = Rig::without_db("closes");
    let server = serve(config_of(&rig), &rig).await;
    assert_eq!(server.get("/guarded").await.status, 200);

    server.stop().await.unwrap();

    assert!(matches!(
        rig.db().acquire().await,
        Err(sqlx::Error::PoolClosed)
    ));
    assert_eq!(rig.db().pool().status().total, 0);
}

#[tokio::test]
async fn a_shutdown_waits_for_what_is_lent_and_lends_nothing_more() {
    let rig = Rig::without_db("drains");
    let server = serve(config_of(&rig), &rig).await;
    let client = server.client;
    let request = tokio::spawn(async move { client.get("/in/insert_and_wait/1").await.status });
    rig.until_at_gate(1).await;
    let pool = rig.db().pool().clone();

    let stopping = tokio::spawn(server.stop());
    until("the pool is closed", || pool.is_closed()).await;
    assert_eq!(pool.status().in_use, 1, "the transaction goes on");
    rig.open_gate(1);

    assert_eq!(request.await.unwrap(), 200);
    stopping.await.unwrap().unwrap();
    assert_eq!(pool.status().total, 0);
    let again = Rig::without_db("drains_again");
    let server = serve(config_of(&again), &again).await;
    let committed = rig.sql("SELECT count(*) FROM {}");
    let committed: i64 = sqlx::query_scalar(committed)
        .fetch_one(again.db())
        .await
        .unwrap();
    assert_eq!(committed, 1);
    drop(server);
}
