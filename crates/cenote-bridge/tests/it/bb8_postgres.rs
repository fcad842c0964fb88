//! bb8-postgres on a real server.

use bb8_postgres::PostgresConnectionManager;
use cenote::{CloseReason, Pool};
use cenote_bridge::Bb8;
use cenote_testkit::conformance::Conformance;
use tokio_postgres::{Client, NoTls};

use crate::eventually;
use crate::postgres::{Admin, config, pid};

fn manager(url: &str, name: &str) -> Bb8<PostgresConnectionManager<NoTls>> {
    Bb8::new(PostgresConnectionManager::new(config(url, name), NoTls))
}

#[tokio::test]
async fn a_bb8_postgres_client_is_lent_and_lent_again() {
    let server = cenote_servers::postgres::find().unwrap();
    let pool = Pool::builder(manager(server.url(), "use")).build().unwrap();
    let first = pid(&pool.acquire().await.unwrap()).await;

    let lease = pool.acquire().await.unwrap();
    let sum: i32 = lease.query_one("select 2 + 3", &[]).await.unwrap().get(0);

    assert_eq!((sum, pid(&lease).await), (5, first));
}

#[tokio::test]
async fn a_killed_bb8_postgres_client_is_replaced_at_its_return() {
    let server = cenote_servers::postgres::find().unwrap();
    let admin = Admin::of(server.url()).await;
    let pool = Pool::builder(manager(server.url(), "kill"))
        .build()
        .unwrap();
    let lease = pool.acquire().await.unwrap();
    let first = pid(&lease).await;

    admin.kill(&lease).await;
    drop(lease);

    assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
    assert_ne!(pid(&pool.acquire().await.unwrap()).await, first);
}

#[tokio::test]
async fn a_bb8_postgres_client_that_is_killed_while_idle_is_not_lent() {
    let server = cenote_servers::postgres::find().unwrap();
    let admin = Admin::of(server.url()).await;
    let pool = Pool::builder(manager(server.url(), "idle"))
        .build()
        .unwrap();
    let first = pid(&pool.acquire().await.unwrap()).await;

    admin.kill_pid(first).await;
    eventually("the idle client knows", async || {
        let mut knows = false;
        pool.retain(|client| {
            knows = client.is_closed();
            true
        });
        knows
    })
    .await;

    assert_ne!(pid(&pool.acquire().await.unwrap()).await, first);
}

#[tokio::test]
async fn a_pool_of_bb8_postgres_survives_a_restart_of_its_server() {
    let mut server = cenote_servers::postgres::start().unwrap();
    let pool = Pool::builder(manager(server.url(), "restart"))
        .build()
        .unwrap();
    let lease = pool.acquire().await.unwrap();

    server.restart().unwrap();
    assert!(lease.simple_query("select 1").await.is_err());
    drop(lease);

    let lease = pool.acquire().await.unwrap();
    lease.simple_query("select 1").await.unwrap();
}

#[tokio::test]
async fn an_open_error_is_the_error_of_bb8_postgres() {
    let mut server = cenote_servers::postgres::start().unwrap();
    server.stop().unwrap();
    let pool = Pool::builder(manager(server.url(), "down"))
        .build()
        .unwrap();

    let error = pool.acquire().await.unwrap_err();

    let text = error.to_string();
    assert!(text.contains("error connecting to server"), "{text}");
}

#[tokio::test]
async fn bb8_postgres_conforms() {
    let server = cenote_servers::postgres::find().unwrap();
    let name = format!("bb8-conforms-{}", std::process::id());
    let (killer, counter) = tokio::join!(Admin::of(server.url()), Admin::of(server.url()));

    Conformance::new(manager(server.url(), &name))
        .kill(async move |client: &mut Client| killer.kill(client).await)
        .count(async move || counter.count(&name).await)
        .run()
        .await;
}
