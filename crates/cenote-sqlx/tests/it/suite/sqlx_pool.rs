//! A part of the connections as a pool of sqlx.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use sqlx::Error;
use tokio::time::{sleep, timeout};

use super::{Rig, world};

const SOON: Duration = Duration::from_secs(20);

/// Waits until this many connections are in use.
async fn in_use(rig: &Rig, wanted: usize) {
    let pool = rig.db.pool();
    let reached = timeout(SOON, pool.wait_for(|status| status.in_use == wanted)).await;
    assert!(reached.is_ok(), "{:?}", pool.status());
}

#[tokio::test]
async fn a_part_of_the_connections_is_a_pool_of_sqlx() {
    let rig = Rig::new("part").await;
    let line = line!() + 1;
    let pool = rig.db.sqlx_pool(2).await.unwrap();

    let plain: sqlx::Pool<world::DB> = pool.clone();
    rig.insert_on(&plain, 1).await.unwrap();
    let mut transaction = plain.begin().await.unwrap();
    rig.insert_on(&mut *transaction, 2).await.unwrap();
    transaction.commit().await.unwrap();
    let (one, two) = (
        plain.acquire().await.unwrap(),
        plain.acquire().await.unwrap(),
    );

    let leases = rig.db.pool().leases();
    assert_eq!(leases.len(), 2);
    for lease in &leases {
        assert_eq!((lease.site.file(), lease.site.line()), (file!(), line));
        assert_eq!(lease.label.as_deref(), Some("sqlx_pool"));
    }
    assert_eq!(rig.db.pool().status().in_use, 2);
    assert!(plain.try_acquire().is_none() && plain.options().get_max_connections() == 2);
    assert_eq!(rig.ids().await, [1, 2]);
    drop((one, two));
    pool.close().await;
    assert_eq!(rig.db.pool().status().in_use, 0);
    assert!(matches!(plain.acquire().await, Err(Error::PoolClosed)));
    rig.assert_clean().await;
}

#[tokio::test]
async fn the_slots_come_back_after_a_drop_and_after_the_close_of_a_clone() {
    let rig = Rig::new("given_back").await;

    let dropped = rig.db.sqlx_pool(2).await.unwrap();
    let plain = dropped.clone();
    sqlx::query("SELECT 1").execute(&plain).await.unwrap();
    drop(dropped);
    in_use(&rig, 0).await;
    assert!(plain.is_closed());

    let kept = rig.db.sqlx_pool(3).await.unwrap();
    let plain = kept.clone();
    sqlx::query("SELECT 1").execute(&plain).await.unwrap();
    plain.close().await;
    in_use(&rig, 0).await;
    rig.assert_clean().await;
    drop(kept);
}

#[tokio::test]
async fn a_slot_does_not_come_back_before_its_connection_is_closed() {
    let rig = Rig::new("not_before").await;
    let pool = rig.db.sqlx_pool(2).await.unwrap();
    let mut held = pool.acquire().await.unwrap();

    drop(pool);
    for _ in 0..20 {
        sleep(Duration::from_millis(1)).await;
        assert_eq!(rig.db.pool().status().in_use, 2);
    }
    sqlx::query("SELECT 1").execute(&mut *held).await.unwrap();
    drop(held);

    in_use(&rig, 0).await;
}

#[tokio::test]
async fn closing_the_handle_closes_the_pool_of_sqlx() {
    let rig = Rig::new("closes_both").await;
    let pool = rig.db.sqlx_pool(1).await.unwrap();
    sqlx::query("SELECT 1").execute(&*pool).await.unwrap();

    timeout(SOON, rig.db.close()).await.unwrap();

    assert!(pool.is_closed());
    assert_eq!(rig.db.pool().status().in_use, 0);
}

#[tokio::test]
async fn the_last_handle_may_go_before_the_pool_of_sqlx() {
    let (builder, _home) = world::builder();
    let db = builder.max_size(2).build().unwrap();
    let pool = db.sqlx_pool(1).await.unwrap();
    sqlx::query("SELECT 1").execute(&*pool).await.unwrap();

    drop(db);

    timeout(SOON, pool.close_event()).await.unwrap();
}

#[tokio::test]
async fn settings_reach_the_pool_of_sqlx() {
    let rig = Rig::with("reached", |builder| builder.setting(world::CHANGE)).await;
    let pool = rig.db.sqlx_pool(2).await.unwrap();

    let changed: i64 = sqlx::query_scalar(world::CHANGED)
        .fetch_one(&*pool)
        .await
        .unwrap();

    assert_eq!(changed, 1);
}

#[tokio::test]
async fn a_pool_of_nothing_or_of_everything_is_refused() {
    let rig = Rig::new("odd_parts").await;

    for connections in [0, 4, 5, u32::MAX] {
        let refused = rig.db.sqlx_pool(connections).await.unwrap_err();
        let text = refused.to_string();
        assert!(text.contains(&format!("{connections} of 4")), "{text}");
    }
    let sandbox = world::Db::sandbox(world::url_at(&rig._home)).await.unwrap();
    let refused = sandbox.sqlx_pool(1).await.unwrap_err().to_string();
    assert!(refused.contains("isolated"), "{refused}");
}

#[tokio::test]
async fn a_pool_of_sqlx_that_is_not_waited_for_takes_nothing() {
    let rig = Rig::new("not_waited").await;
    let _held = [
        rig.db.acquire().await.unwrap(),
        rig.db.acquire().await.unwrap(),
    ];

    {
        let mut part = pin!(rig.db.sqlx_pool(3));
        let taken = async {
            poll_fn(|context| match part.as_mut().poll(context) {
                Poll::Ready(_) => panic!("there are only two left"),
                Poll::Pending if rig.db.pool().status().in_use == 4 => Poll::Ready(()),
                Poll::Pending => Poll::Pending,
            })
            .await;
        };
        timeout(SOON, taken).await.unwrap();
    }

    in_use(&rig, 2).await;
    rig.db.sqlx_pool(2).await.unwrap().close().await;
}
