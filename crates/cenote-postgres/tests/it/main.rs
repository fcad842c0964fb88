//! The driver on a real server: in use, misused, and under faults.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod ambient;
mod building;
mod cancellation;
mod classes;
mod conformance;
mod faults;
mod hygiene;
mod listening;
mod load;
mod statements;
mod tls;
mod transactions;

use std::sync::OnceLock;
use std::time::Duration;

use cenote_postgres::tokio_postgres::{Client, NoTls, connect};
use cenote_postgres::{Builder, Lease, Pool};
use cenote_servers::Found;
use tokio::time::{sleep, timeout};

/// A real server needs milliseconds; this is enough on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// The URL of the server that all tests share.
fn url() -> &'static str {
    static FOUND: OnceLock<Found> = OnceLock::new();
    let found = FOUND.get_or_init(|| cenote_servers::postgres::find().unwrap());
    found.url()
}

/// A builder on the shared server, without TLS and with generous limits.
fn builder(size: usize) -> Builder {
    builder_at(url(), size)
}

fn builder_at(url: &str, size: usize) -> Builder {
    let sign = if url.contains('?') { '&' } else { '?' };
    Pool::from_url(format!("{url}{sign}sslmode=disable"))
        .max_size(size)
        .acquire_timeout(LIMIT)
        .open_timeout(LIMIT)
        .clean_timeout(LIMIT)
        .check_timeout(LIMIT)
        .close_timeout(LIMIT)
}

fn pool(size: usize) -> Pool {
    builder(size).build().unwrap()
}

/// Waits for the effect of another task or process.
async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = timeout(LIMIT, async {
        while !holds().await {
            sleep(Duration::from_millis(5)).await;
        }
    });
    waiting.await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// Returns the number of the server's process.
async fn backend(lease: &Lease) -> i32 {
    let row = lease.query_one("select pg_backend_pid()", &[]).await;
    row.unwrap().get(0)
}

/// Returns whether a transaction is open. The server accepts a savepoint only there.
async fn is_open(lease: &Lease) -> bool {
    lease.batch_execute("savepoint cenote_asks").await.is_ok()
}

/// Returns the text that a query returns.
async fn text(lease: &Lease, sql: &str) -> String {
    lease.query_one(sql, &[]).await.unwrap().get(0)
}

/// Returns the number that a query returns.
async fn number(pool: &Pool, sql: &str) -> i64 {
    pool.query_one(sql, &[]).await.unwrap().get(0)
}

/// A client beside the pool.
struct Admin(Client);

impl Admin {
    async fn at(url: &str) -> Self {
        let (client, connection) = connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        Self(client)
    }

    async fn count(&self, sql: &str) -> i64 {
        self.0.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// Ends a process of the server.
    async fn kill(&self, backend: i32) {
        let kill = "select pg_terminate_backend($1)";
        self.0.execute(kill, &[&backend]).await.unwrap();
    }

    /// Waits until the server runs a statement with this mark in its text, or none.
    async fn until_running(&self, mark: &str, running: bool) {
        let sql = format!(
            "select count(*) from pg_stat_activity \
             where query like '%{mark}%' and state = 'active' and pid <> pg_backend_pid()"
        );
        eventually(mark, async || (self.count(&sql).await > 0) == running).await;
    }
}
