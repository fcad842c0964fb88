//! deadpool-postgres on a real server.

use cenote::{Lease, Pool};
use cenote_bridge::{Deadpool, DeadpoolObject};
use cenote_testkit::conformance::Conformance;
use deadpool_postgres::{Manager, ManagerConfig, RecyclingMethod};
use tokio_postgres::NoTls;

use crate::postgres::{Admin, config, pid};

type Object = DeadpoolObject<Manager>;

fn manager(url: &str, name: &str, recycling_method: RecyclingMethod) -> Deadpool<Manager> {
    let settings = ManagerConfig { recycling_method };
    let manager = Manager::from_config(config(url, name), NoTls, settings);
    Deadpool::new(manager)
}

#[tokio::test]
async fn a_deadpool_postgres_client_is_lent_and_recycled() {
    let server = cenote_servers::postgres::find().unwrap();
    let manager = manager(server.url(), "use", RecyclingMethod::Verified);
    let pool = Pool::builder(manager).build().unwrap();
    let first = pid(&pool.acquire().await.unwrap()).await;

    let lease = pool.acquire().await.unwrap();
    let add = lease.prepare_cached("select 2 + 3").await.unwrap();
    let sum: i32 = lease.query_one(&add, &[]).await.unwrap().get(0);

    assert_eq!((sum, pid(&lease).await), (5, first));
    assert_eq!(DeadpoolObject::metrics(&lease).recycle_count, 1);
}

#[tokio::test]
async fn a_killed_deadpool_postgres_client_is_replaced() {
    let server = cenote_servers::postgres::find().unwrap();
    let admin = Admin::of(server.url()).await;
    let manager = manager(server.url(), "kill", RecyclingMethod::Fast);
    let pool = Pool::builder(manager).build().unwrap();
    let lease = pool.acquire().await.unwrap();
    let first = pid(&lease).await;

    admin.kill(&lease).await;
    drop(lease);

    assert_ne!(pid(&pool.acquire().await.unwrap()).await, first);
}

#[tokio::test]
async fn a_pool_of_deadpool_postgres_survives_a_restart_of_its_server() {
    let mut server = cenote_servers::postgres::start().unwrap();
    let manager = manager(server.url(), "restart", RecyclingMethod::Verified);
    let pool = Pool::builder(manager).build().unwrap();
    drop(pool.acquire().await.unwrap());

    server.restart().unwrap();

    let lease = pool.acquire().await.unwrap();
    lease.simple_query("select 1").await.unwrap();
}

/// The manager lists the statement caches of its clients, and `detach` takes one off the list.
#[tokio::test]
async fn a_deadpool_postgres_client_that_leaves_is_detached() {
    let server = cenote_servers::postgres::find().unwrap();
    let manager = manager(server.url(), "detach", RecyclingMethod::Fast);
    let pool = Pool::builder(manager).build().unwrap();
    let lease = pool.acquire().await.unwrap();

    let client = DeadpoolObject::take(Lease::detach(lease));

    client.prepare_cached("select 1").await.unwrap();
    pool.manager().original().statement_caches.clear();
    assert_eq!(client.statement_cache.size(), 1, "its cache is its own");
}

#[tokio::test]
async fn deadpool_postgres_conforms() {
    let server = cenote_servers::postgres::find().unwrap();
    let name = format!("deadpool-conforms-{}", std::process::id());
    let (killer, counter) = tokio::join!(Admin::of(server.url()), Admin::of(server.url()));

    Conformance::new(manager(server.url(), &name, RecyclingMethod::Clean))
        .kill(async move |client: &mut Object| killer.kill(client).await)
        .dirty(
            async |client: &mut Object| {
                client
                    .batch_execute("set lock_timeout = '7s'")
                    .await
                    .unwrap();
            },
            async |client: &mut Object| {
                let row = client.query_one("show lock_timeout", &[]).await.unwrap();
                row.get::<_, String>(0) == "7s"
            },
        )
        .count(async move || counter.count(&name).await)
        .run()
        .await;
}
