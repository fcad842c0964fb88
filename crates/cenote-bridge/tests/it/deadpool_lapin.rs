//! deadpool-lapin on a real RabbitMQ.

use async_rs::TokioRuntime;
use cenote::Pool;
use cenote_bridge::{Deadpool, DeadpoolObject};
use cenote_testkit::conformance::Conformance;
use deadpool_lapin::Manager;
use deadpool_lapin::lapin::options::{BasicPublishOptions, QueueDeclareOptions};
use deadpool_lapin::lapin::types::FieldTable;
use deadpool_lapin::lapin::{BasicProperties, Connection, ConnectionProperties};

use crate::eventually;

fn manager(url: &str) -> Deadpool<Manager> {
    let runtime = TokioRuntime::tokio_current();
    Deadpool::new(Manager::new(url, ConnectionProperties::default, runtime))
}

/// Declares a queue that ends with its connection, which shows that the connection works.
async fn works(connection: &Connection) -> bool {
    let Ok(channel) = connection.create_channel().await else {
        return false;
    };
    let options = QueueDeclareOptions {
        exclusive: true,
        ..QueueDeclareOptions::default()
    };
    let declared = channel.queue_declare("".into(), options, FieldTable::default());
    declared.await.is_ok()
}

/// Makes the server end the connection: it does not know `immediate`, and such an error ends the
/// whole connection.
async fn kill(connection: &Connection) {
    let channel = connection.create_channel().await.unwrap();
    let options = BasicPublishOptions {
        immediate: true,
        ..BasicPublishOptions::default()
    };
    let properties = BasicProperties::default();
    let published = channel.basic_publish("".into(), "none".into(), options, b"", properties);
    drop(published.await);
    eventually("the client knows", async || {
        !connection.status().connected()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadpool_lapin_connection_is_lent_and_recycled() {
    let server = cenote_servers::rabbitmq::find().unwrap();
    let pool = Pool::builder(manager(server.url())).build().unwrap();
    assert!(works(&pool.acquire().await.unwrap()).await);

    let lease = pool.acquire().await.unwrap();

    assert!(works(&lease).await);
    assert_eq!(DeadpoolObject::metrics(&lease).recycle_count, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_deadpool_lapin_connection_is_replaced() {
    let server = cenote_servers::rabbitmq::find().unwrap();
    let pool = Pool::builder(manager(server.url())).build().unwrap();
    let lease = pool.acquire().await.unwrap();

    kill(&lease).await;
    drop(lease);

    assert!(works(&pool.acquire().await.unwrap()).await);
    assert_eq!(pool.status().opened, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_of_deadpool_lapin_survives_a_restart_of_its_server() {
    let mut server = cenote_servers::rabbitmq::start().unwrap();
    let pool = Pool::builder(manager(server.url())).build().unwrap();
    let lease = pool.acquire().await.unwrap();

    server.restart().unwrap();
    eventually("the client knows", async || !lease.status().connected()).await;
    drop(lease);

    assert!(works(&pool.acquire().await.unwrap()).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn deadpool_lapin_conforms() {
    let server = cenote_servers::rabbitmq::find().unwrap();

    Conformance::new(manager(server.url()))
        .kill(async |connection: &mut DeadpoolObject<Manager>| kill(connection).await)
        .run()
        .await;
}
