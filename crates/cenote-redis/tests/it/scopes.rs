//! In a scope, a connection that something was left on stays with the scope.

use redis::aio::transaction_async;
use redis::{AsyncCommands, cmd};

use crate::admin::Admin;
use crate::{builder, id};

#[tokio::test]
async fn a_watch_in_a_scope_keeps_its_connection_until_the_transaction() {
    let server = cenote_servers::redis::start().unwrap();
    let mut pool = builder(&server).max_size(1).build().unwrap();

    cenote::scope(async {
        cmd("WATCH").arg("k").exec_async(&mut pool).await.unwrap();
        let first = id(&mut pool).await;
        assert_eq!(
            id(&mut pool).await,
            first,
            "all commands of the scope run on it"
        );
        assert_eq!(pool.pool().leases().len(), 1);

        cmd("MULTI").exec_async(&mut pool).await.unwrap();
        let () = pool.set("k", "v").await.unwrap();
        cmd("EXEC").exec_async(&mut pool).await.unwrap();

        assert_eq!(pool.status().in_use, 0, "it went back");
        assert_ne!(id(&mut pool).await, first, "on a lane");
    })
    .await;

    let value: String = pool.get("k").await.unwrap();
    assert_eq!(value, "v");
}

#[tokio::test]
async fn the_loop_of_a_transaction_runs_in_a_scope() {
    let server = cenote_servers::redis::start().unwrap();
    let pool = builder(&server).max_size(4).build().unwrap();
    let increments: Vec<_> = (0..8)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(cenote::scope(async move {
                transaction_async(pool, &["count"], async |mut pool, mut pipe| {
                    let count: Option<u32> = pool.get("count").await?;
                    let next = count.unwrap_or(0) + 1;
                    pipe.set("count", next)
                        .ignore()
                        .query_async(&mut pool)
                        .await
                })
                .await
            }))
        })
        .collect();

    for increment in increments {
        let () = increment.await.unwrap().unwrap();
    }

    let mut pool = pool;
    let count: u32 = pool.get("count").await.unwrap();
    assert_eq!(count, 8);
    assert_eq!(pool.pool().leases().len(), 1, "only the lane is out");
}

#[tokio::test]
async fn what_a_scope_leaves_behind_is_undone_when_it_ends() {
    let server = cenote_servers::redis::start().unwrap();
    let mut pool = builder(&server).max_size(1).build().unwrap();
    let inside = cenote::scope(async {
        cmd("SELECT").arg(4).exec_async(&mut pool).await.unwrap();
        let () = pool.set("k", "away").await.unwrap();
        id(&mut pool).await
    })
    .await;

    let mut lease = pool.acquire().await.unwrap();
    let value: Option<String> = lease.get("k").await.unwrap();

    assert_eq!((value, id(&mut lease).await), (None, inside));
}

/// Otherwise the rest of a transaction would run outside of it.
#[tokio::test]
async fn a_scope_whose_connection_broke_in_a_transaction_fails_until_that_is_given_up() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let mut pool = builder(&server).build().unwrap();

    cenote::scope(async {
        let multi = cmd("MULTI");
        let watch = cmd("WATCH").arg("k").to_owned();
        watch.exec_async(&mut pool).await.unwrap();
        let own = id(&mut pool).await;
        multi.exec_async(&mut pool).await.unwrap();
        admin.kill(own).await;

        for _ in 0..3 {
            let lost = pool.set::<_, _, ()>("k", "outside").await.unwrap_err();
            assert!(lost.is_connection_dropped(), "{lost}");
        }
        cmd("DISCARD").exec_async(&mut pool).await.unwrap_err();
        let value: Option<String> = pool.get("k").await.unwrap();
        assert_eq!(value, None);
    })
    .await;
}

#[tokio::test]
async fn a_scope_that_leaves_nothing_behind_holds_nothing() {
    let server = cenote_servers::redis::start().unwrap();
    let mut pool = builder(&server).build().unwrap();

    cenote::scope(async {
        let () = pool.set("k", "v").await.unwrap();
        cmd("UNWATCH").exec_async(&mut pool).await.unwrap();
        assert_eq!(pool.pool().leases().len(), 1, "the lane");
        assert_eq!(pool.status().opened, 1);
    })
    .await;
}
