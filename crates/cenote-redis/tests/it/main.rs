//! Leases, lanes and the handle, on real servers.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod admin;
mod back_pressure;
mod blocking;
mod breaks;
mod building;
mod cancelled;
mod classes;
mod conforms;
mod handle;
mod hygiene;
mod lanes;
mod load;
mod messages;
mod restarts;
mod scopes;
mod silence;
mod tls;

use std::time::Duration;

use cenote_redis::{Builder, Pool};
use cenote_servers::Server;
use redis::cmd;
use tokio::time::sleep;

/// A server needs milliseconds; this is enough on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// Waits for the effect of another process or task.
async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(LIMIT, async {
        while !holds().await {
            sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// Returns a builder whose time limits suit a busy machine.
fn builder(server: &Server) -> Builder {
    patient(server.url())
}

fn patient(url: &str) -> Builder {
    Pool::from_url(url)
        .acquire_timeout(LIMIT)
        .open_timeout(LIMIT)
        .check_timeout(LIMIT)
        .clean_timeout(LIMIT)
        .response_timeout(LIMIT)
}

/// Returns the number that the server has given to a connection.
async fn id(connection: &mut impl redis::aio::ConnectionLike) -> u64 {
    cmd("CLIENT")
        .arg("ID")
        .query_async(connection)
        .await
        .unwrap()
}
