//! The customizers of bb8 and r2d2 see each connection.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use bb8_redis::RedisConnectionManager;
use cenote::{AcquireError, Pool};
use cenote_bridge::{Bb8, R2d2};
use r2d2_sqlite::SqliteConnectionManager;
use redis::aio::MultiplexedConnection;
use redis::{RedisError, cmd};
use rusqlite::Connection;

type Done<'a> = Pin<Box<dyn Future<Output = Result<(), RedisError>> + Send + 'a>>;

/// Names its connections.
#[derive(Debug)]
struct Named(&'static str);

impl bb8::CustomizeConnection<MultiplexedConnection, RedisError> for Named {
    fn on_acquire<'a>(&'a self, connection: &'a mut MultiplexedConnection) -> Done<'a> {
        Box::pin(async {
            let mut name = cmd("CLIENT");
            name.arg("SETNAME").arg(self.0);
            name.query_async(connection).await
        })
    }
}

/// Turns foreign keys on, and counts the connections that were closed.
#[derive(Debug)]
struct Keyed(Arc<AtomicUsize>);

impl r2d2::CustomizeConnection<Connection, rusqlite::Error> for Keyed {
    fn on_acquire(&self, connection: &mut Connection) -> Result<(), rusqlite::Error> {
        connection.execute_batch("pragma foreign_keys = on")
    }

    fn on_release(&self, _: Connection) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn redis(url: &str, name: &'static str) -> Bb8<RedisConnectionManager> {
    let manager = RedisConnectionManager::new(url).unwrap();
    Bb8::new(manager).connection_customizer(Box::new(Named(name)))
}

#[tokio::test]
async fn a_customizer_of_bb8_sees_each_new_connection() {
    let server = cenote_servers::redis::find().unwrap();
    let pool = Pool::builder(redis(server.url(), "worker"))
        .build()
        .unwrap();

    let mut lease = pool.acquire().await.unwrap();

    let name = cmd("CLIENT").arg("GETNAME").query_async(&mut *lease).await;
    assert_eq!(name, Ok("worker".to_owned()));
}

#[tokio::test]
async fn an_error_of_a_customizer_fails_the_open() {
    let server = cenote_servers::redis::find().unwrap();
    let pool = Pool::builder(redis(server.url(), "no spaces here"))
        .build()
        .unwrap();

    let refused = pool.acquire().await;

    assert!(matches!(refused, Err(AcquireError::Open { .. })));
}

#[tokio::test]
async fn a_customizer_of_r2d2_sees_each_connection_come_and_go() {
    let released = Arc::new(AtomicUsize::new(0));
    let manager = R2d2::new(SqliteConnectionManager::memory());
    let manager = manager.connection_customizer(Box::new(Keyed(Arc::clone(&released))));
    let pool = Pool::builder(manager).build().unwrap();

    let lease = pool.acquire().await.unwrap();
    let keyed = lease.query_row("pragma foreign_keys", [], |row| row.get(0));
    drop(lease);
    pool.close_within(Duration::from_secs(10)).await;

    assert_eq!(keyed, Ok(1));
    assert_eq!(released.load(SeqCst), 1);
}
