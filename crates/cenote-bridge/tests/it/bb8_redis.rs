//! bb8-redis on a real server.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use bb8_redis::RedisConnectionManager;
use cenote::{CloseReason, Pool};
use cenote_bridge::Bb8;
use cenote_testkit::conformance::Conformance;
use redis::aio::MultiplexedConnection;
use redis::cmd;

use crate::redis_server::Admin;

fn manager(url: &str) -> Bb8<RedisConnectionManager> {
    Bb8::new(RedisConnectionManager::new(url).unwrap())
}

async fn id(connection: &mut MultiplexedConnection) -> u64 {
    let id = cmd("CLIENT").arg("ID").query_async(connection).await;
    id.unwrap()
}

#[tokio::test]
async fn a_bb8_redis_connection_is_lent_and_lent_again() {
    let server = cenote_servers::redis::find().unwrap();
    let pool = Pool::builder(manager(server.url())).build().unwrap();
    let first = id(&mut pool.acquire().await.unwrap()).await;

    let mut lease = pool.acquire().await.unwrap();
    let said: String = cmd("PING").query_async(&mut *lease).await.unwrap();

    assert_eq!((said.as_str(), id(&mut lease).await), ("PONG", first));
}

/// The manager says of no connection that it is broken. Only a check finds a dead one.
#[tokio::test]
async fn a_killed_bb8_redis_connection_is_replaced_by_a_pool_that_checks_each_acquire() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url());
    let pool = Pool::builder(manager(server.url())).check_after_idle(Duration::ZERO);
    let pool = pool.build().unwrap();
    let mut lease = pool.acquire().await.unwrap();
    let first = id(&mut lease).await;

    admin.kill(first);
    drop(lease);

    assert_ne!(id(&mut pool.acquire().await.unwrap()).await, first);
    assert_eq!(pool.status().closes.by(CloseReason::FailedCheck), 1);
}

#[tokio::test]
async fn a_pool_of_bb8_redis_survives_a_restart_of_its_server() {
    let mut server = cenote_servers::redis::start().unwrap();
    let pool = Pool::builder(manager(server.url())).check_after_idle(Duration::ZERO);
    let pool = pool.build().unwrap();
    drop(pool.acquire().await.unwrap());

    server.restart().unwrap();

    let mut lease = pool.acquire().await.unwrap();
    let said: String = cmd("PING").query_async(&mut *lease).await.unwrap();
    assert_eq!(said, "PONG");
}

#[tokio::test]
async fn bb8_redis_conforms() {
    let server = cenote_servers::redis::start().unwrap();
    let admin = Rc::new(RefCell::new(Admin::of(server.url())));
    let counter = Rc::clone(&admin);

    Conformance::new(manager(server.url()))
        .kill(async move |connection: &mut MultiplexedConnection| {
            let id = id(connection).await;
            admin.borrow_mut().kill(id);
        })
        .count(async move || counter.borrow_mut().count())
        .run()
        .await;
}
