//! deadpool-redis on a real server.

use std::cell::RefCell;
use std::rc::Rc;

use cenote::{CloseReason, Pool};
use cenote_bridge::{Deadpool, DeadpoolObject};
use cenote_testkit::conformance::Conformance;
use deadpool_redis::Manager;
use redis::aio::MultiplexedConnection;
use redis::{cmd, pipe};

use crate::redis_server::Admin;

fn manager(url: &str) -> Deadpool<Manager> {
    Deadpool::new(Manager::new(url).unwrap())
}

async fn id(connection: &mut MultiplexedConnection) -> u64 {
    let id = cmd("CLIENT").arg("ID").query_async(connection).await;
    id.unwrap()
}

#[tokio::test]
async fn a_deadpool_redis_connection_is_lent_and_recycled() {
    let server = cenote_servers::redis::find().unwrap();
    let pool = Pool::builder(manager(server.url())).build().unwrap();
    let first = id(&mut pool.acquire().await.unwrap()).await;

    let mut lease = pool.acquire().await.unwrap();
    let said: String = cmd("PING").query_async(&mut **lease).await.unwrap();

    assert_eq!((said.as_str(), id(&mut lease).await), ("PONG", first));
    assert_eq!(DeadpoolObject::metrics(&lease).recycle_count, 1);
}

/// Its `recycle` sends `UNWATCH`. Without it, the transaction of the next user would fail.
#[tokio::test]
async fn a_watch_of_one_user_does_not_reach_the_next() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url());
    let pool = Pool::builder(manager(server.url()))
        .max_size(1)
        .build()
        .unwrap();
    let mut lease = pool.acquire().await.unwrap();
    let () = cmd("WATCH")
        .arg("key")
        .query_async(&mut **lease)
        .await
        .unwrap();
    drop(lease);

    let mut lease = pool.acquire().await.unwrap();
    admin.set("key", 1);
    let mut transaction = pipe();
    transaction.atomic().cmd("GET").arg("key");
    let seen: Option<(u32,)> = transaction.query_async(&mut **lease).await.unwrap();

    assert_eq!(seen, Some((1,)));
}

#[tokio::test]
async fn a_killed_deadpool_redis_connection_is_replaced() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url());
    let pool = Pool::builder(manager(server.url())).build().unwrap();
    let mut lease = pool.acquire().await.unwrap();
    let first = id(&mut lease).await;

    admin.kill(first);
    drop(lease);

    assert_ne!(id(&mut pool.acquire().await.unwrap()).await, first);
    assert_eq!(pool.status().closes.by(CloseReason::FailedClean), 1);
}

#[tokio::test]
async fn a_pool_of_deadpool_redis_survives_a_restart_of_its_server() {
    let mut server = cenote_servers::redis::start().unwrap();
    let pool = Pool::builder(manager(server.url())).build().unwrap();
    drop(pool.acquire().await.unwrap());

    server.restart().unwrap();

    let mut lease = pool.acquire().await.unwrap();
    let said: String = cmd("PING").query_async(&mut **lease).await.unwrap();
    assert_eq!(said, "PONG");
}

#[tokio::test]
async fn deadpool_redis_conforms() {
    let server = cenote_servers::redis::start().unwrap();
    let admin = Rc::new(RefCell::new(Admin::of(server.url())));
    let counter = Rc::clone(&admin);

    Conformance::new(manager(server.url()))
        .kill(async move |connection: &mut DeadpoolObject<Manager>| {
            let id = id(connection).await;
            admin.borrow_mut().kill(id);
        })
        .count(async move || counter.borrow_mut().count())
        .run()
        .await;
}
