//! The manager for r2d2 that the crate `redis` has, on a real server.

use std::cell::RefCell;
use std::rc::Rc;
use std::thread;

use cenote::{AcquireError, CloseReason, Pool};
use cenote_bridge::{R2d2, R2d2Connection};
use cenote_testkit::conformance::Conformance;
use redis::{Client, Connection, RedisResult, cmd};

use crate::redis_server::Admin;

fn manager(url: &str) -> R2d2<Client> {
    R2d2::new(Client::open(url).unwrap())
}

fn id(connection: &mut Connection) -> u64 {
    cmd("CLIENT").arg("ID").query(connection).unwrap()
}

#[tokio::test]
async fn a_blocking_redis_connection_is_lent_and_lent_again() {
    let server = cenote_servers::redis::find().unwrap();
    let pool = Pool::builder(manager(server.url())).build().unwrap();
    let first = id(&mut pool.acquire().await.unwrap());

    let mut lease = pool.acquire().await.unwrap();
    let used = tokio::task::spawn_blocking(move || {
        let said: String = cmd("PING").query(&mut **lease).unwrap();
        (said, id(&mut lease))
    });

    assert_eq!(used.await.unwrap(), ("PONG".to_owned(), first));
}

#[test]
fn a_caller_without_a_runtime_gets_a_connection() {
    let server = cenote_servers::redis::find().unwrap();
    let pool = Pool::builder(manager(server.url())).build().unwrap();

    let said = thread::spawn(move || {
        let mut lease = pool.acquire_blocking().unwrap();
        cmd("PING").query::<String>(&mut **lease).unwrap()
    });

    assert_eq!(said.join().unwrap(), "PONG");
}

#[tokio::test]
async fn a_killed_blocking_redis_connection_is_replaced_at_its_return() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url());
    let pool = Pool::builder(manager(server.url())).build().unwrap();
    let mut lease = pool.acquire().await.unwrap();
    let first = id(&mut lease);

    admin.kill(first);
    let used: RedisResult<String> = cmd("PING").query(&mut **lease);
    drop(lease);

    assert!(used.is_err());
    assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
    assert_ne!(id(&mut pool.acquire().await.unwrap()), first);
}

#[tokio::test]
async fn a_pool_of_blocking_redis_survives_a_restart_of_its_server() {
    let mut server = cenote_servers::redis::start().unwrap();
    let pool = Pool::builder(manager(server.url()));
    let pool = pool
        .check_after_idle(std::time::Duration::ZERO)
        .build()
        .unwrap();
    drop(pool.acquire().await.unwrap());

    server.stop().unwrap();
    let refused = pool.acquire().await;
    server.restart().unwrap();

    assert!(matches!(refused, Err(AcquireError::Open { .. })));
    let mut lease = pool.acquire().await.unwrap();
    assert_eq!(cmd("PING").query::<String>(&mut **lease).unwrap(), "PONG");
}

#[tokio::test]
async fn blocking_redis_conforms() {
    let server = cenote_servers::redis::start().unwrap();
    let admin = Rc::new(RefCell::new(Admin::of(server.url())));
    let counter = Rc::clone(&admin);

    Conformance::new(manager(server.url()))
        .kill(async move |connection: &mut R2d2Connection<Connection>| {
            admin.borrow_mut().kill(id(connection));
        })
        .count(async move || counter.borrow_mut().count())
        .run()
        .await;
}
