//! A server that is restarted.

use redis::{AsyncCommands, cmd};

use crate::{builder, eventually, id};

#[tokio::test]
async fn leases_and_lanes_survive_a_restart() {
    let mut server = cenote_servers::redis::start().unwrap();
    let mut pool = builder(&server).mux(2).max_size(2).build().unwrap();
    let () = pool.set("k", "v").await.unwrap();
    drop(pool.acquire().await.unwrap());

    server.restart().unwrap();

    eventually("lanes work", async || {
        pool.get::<_, String>("k")
            .await
            .is_ok_and(|value| value == "v")
    })
    .await;
    eventually("leases work", async || {
        let mut lease = pool.acquire().await.unwrap();
        cmd("PING").query_async::<String>(&mut lease).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_down_is_an_error_at_once_and_comes_back() {
    let mut server = cenote_servers::redis::start().unwrap();
    let mut pool = builder(&server).build().unwrap();
    id(&mut pool).await;
    server.kill().unwrap();
    eventually("the lane is gone", async || pool.lanes().is_empty()).await;

    let error = pool.get::<_, Option<String>>("k").await.unwrap_err();
    assert!(error.is_connection_refusal(), "{error}");
    let error = pool.acquire().await.unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");

    server.restart().unwrap();
    let _: Option<String> = pool.get("k").await.unwrap();
}
