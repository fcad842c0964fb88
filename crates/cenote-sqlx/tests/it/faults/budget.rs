//! The pool of sqlx that has a part of the connections: the server counts both together.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join;

use super::*;

/// Statements of each task of the load.
const ROUNDS: i32 = 60;

/// Runs statements through the handle and through the pool of sqlx at the same time.
async fn load(trial: &Trial, pool: &sqlx::Pool<DB>) {
    let ours = (1..=8).map(|task| async move {
        for round in 1..=ROUNDS {
            let done = trial.write(task * 1000 + round).await;
            done.or_else(|error| match cenote_sqlx::is_timeout(&error) {
                true => Ok(()),
                false => Err(error),
            })
            .unwrap();
        }
    });
    let theirs = (0..8).map(|_| async move {
        for _ in 0..ROUNDS {
            sqlx::query("SELECT 1").execute(pool).await.unwrap();
        }
    });
    join(join_all(ours), join_all(theirs)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_never_has_more_connections_than_the_handle_may_have() {
    let trial = Trial::with("budget", |builder| {
        builder.acquire_timeout(Duration::from_secs(20))
    })
    .await;
    drop(trial.all().await);
    assert_eq!(trial.sessions().await, MAX_SIZE as i64, "all are open");

    let pool = trial.db.sqlx_pool(2).await.unwrap();
    eventually("two are closed", async || trial.sessions().await == 2).await;
    let over = AtomicBool::new(false);
    let watch = async {
        let mut most = 0;
        while !over.load(Ordering::Relaxed) {
            most = trial.sessions().await.max(most);
        }
        most
    };
    let work = async {
        load(&trial, &pool).await;
        over.store(true, Ordering::Relaxed);
    };
    let (most, ()) = join(watch, work).await;

    assert_eq!(most, MAX_SIZE as i64, "both were busy, and none was over");
    assert_eq!(trial.db.pool().status().in_use, 2);
    pool.close().await;
    trial.assert_recovered(9999, Duration::from_secs(5)).await;
}
