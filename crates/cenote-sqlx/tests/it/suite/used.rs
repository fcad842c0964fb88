//! Reports tell the time in statements from the time that a lease is held.

use std::time::Duration;

use cenote::status::Holder;
use cenote_sqlx::pool_error;
use futures_util::TryStreamExt;

use super::Rig;
use super::world;

/// Longer than a statement that does nothing, and than some ticks of the kernel's clock.
const LONG: Duration = Duration::from_millis(500);

/// Waits until the only lease is held for long, and returns its holder.
async fn long_held(rig: &Rig) -> Holder {
    loop {
        let holder = rig.db.pool().leases().into_iter().next();
        match holder.filter(|holder| holder.held_for > LONG && holder.used.is_some()) {
            Some(holder) => return holder,
            None => tokio::task::yield_now().await,
        }
    }
}

#[tokio::test]
async fn a_forgotten_lease_was_not_used_for_long() {
    let rig = Rig::new("forgotten").await;
    let mut lease = rig.db.acquire().await.unwrap();
    sqlx::query("SELECT 1").execute(&mut lease).await.unwrap();

    let holder = long_held(&rig).await;

    let used = holder.used.unwrap().time;
    assert!(used < holder.held_for / 2, "{holder}");
    let shown = holder.to_string();
    assert!(shown.contains(" of it in statements "), "{shown}");
    assert!(shown.ends_with(" (SELECT 1)"), "{shown}");
}

#[tokio::test]
async fn a_forgotten_transaction_was_not_used_for_long() {
    let rig = Rig::new("forgotten_begun").await;
    let _transaction = rig.db.begin().await.unwrap();

    let holder = long_held(&rig).await;

    let used = holder.used.unwrap().time;
    assert!(used < holder.held_for / 2, "{holder}");
    assert_eq!(holder.label.as_deref(), Some("transaction"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_statement_uses_its_lease_all_the_time() {
    let rig = Rig::new("slow_use").await;
    let slow = tokio::spawn({
        let (db, sql) = (rig.db.clone(), world::sql(&world::slow(60)));
        async move { sqlx::query(sql).execute(&db).await.map(drop) }
    });

    let holder = long_held(&rig).await;

    slow.abort();
    let used = holder.used.unwrap().time;
    assert!(used > holder.held_for / 2, "{holder}");
}

#[tokio::test]
async fn a_stream_that_is_not_read_does_not_use_its_lease() {
    let rig = Rig::new("unread_stream").await;
    let mut rows = sqlx::query(world::MANY).fetch(&rig.db);
    rows.try_next().await.unwrap().unwrap();

    let holder = long_held(&rig).await;

    let used = holder.used.unwrap().time;
    assert!(used < holder.held_for / 2, "{holder}");
}

#[tokio::test]
async fn each_lease_begins_at_zero_and_a_timeout_shows_it() {
    let limit = Duration::from_millis(300);
    let rig = Rig::with("used_again", |builder| {
        builder.max_size(1).acquire_timeout(limit)
    });
    let rig = rig.await;
    let mut lease = rig.db.acquire().await.unwrap();
    let slow = tokio::time::timeout(2 * LONG, async {
        let slow = sqlx::query(world::sql(&world::slow(60)));
        slow.execute(&mut lease).await.map(drop)
    });
    assert!(slow.await.is_err(), "it takes longer");
    drop(lease);
    let mut lease = loop {
        match rig.db.acquire().await {
            Ok(lease) => break lease,
            Err(error) => assert!(pool_error(&error).is_some(), "{error}"),
        }
    };
    sqlx::query("SELECT 1").execute(&mut lease).await.unwrap();

    let error = rig.db.acquire().await.expect_err("it is held");

    let used = rig.db.pool().leases()[0].used.unwrap().time;
    assert!(used < LONG, "{used:?} of another lease");
    let shown = error.to_string();
    assert!(shown.contains(" of it in statements (SELECT 1)"), "{shown}");
}
