//! Notifications on a connection of the handle.

use std::time::Duration;

use cenote_sqlx::Db;
use futures_util::TryStreamExt;
use sqlx::{Error, Postgres};
use tokio::time::timeout;

use crate::world::postgres as world;

const SOON: Duration = Duration::from_secs(20);

fn two(name: &str) -> Db<Postgres> {
    let url = world::marked(&world::url(), name);
    Db::postgres(url).max_size(2).build().unwrap()
}

async fn notify(db: &Db<Postgres>, channel: &str, payload: &str) {
    let sql = sqlx::query("SELECT pg_notify($1, $2)");
    sql.bind(channel).bind(payload).execute(db).await.unwrap();
}

#[tokio::test]
async fn a_listener_has_a_connection_of_the_handle_until_it_is_dropped() {
    let db = two("cenote_listener");
    let line = line!() + 1;
    let mut listener = db.listener().await.unwrap();
    listener.listen("cenote_listener").await.unwrap();

    notify(&db, "cenote_listener", "one").await;
    let one = timeout(SOON, listener.recv()).await.unwrap().unwrap();
    assert_eq!(one.payload(), "one");
    let leases = db.pool().leases();
    assert_eq!((leases.len(), leases[0].site.line()), (1, line));
    assert_eq!(leases[0].label.as_deref(), Some("listener"));
    let sessions =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'cenote_listener'";
    let sessions: i64 = sqlx::query_scalar(sessions).fetch_one(&db).await.unwrap();
    assert_eq!(sessions, 2);
    drop(listener);

    let back = db.pool().wait_for(|status| status.in_use == 0);
    timeout(SOON, back).await.unwrap();
    let mut listener = db.listener().await.unwrap();
    listener.listen("cenote_listener_2").await.unwrap();
    listener.close().await;
    assert_eq!(db.pool().status().in_use, 0);
}

#[tokio::test]
async fn a_listener_whose_session_was_killed_listens_again() {
    let db = two("cenote_listener_killed");
    let mut listener = db.listener().await.unwrap();
    listener.listen("cenote_killed").await.unwrap();
    let mine: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
        .fetch_one(&mut *listener)
        .await
        .unwrap();

    let kill = sqlx::query("SELECT pg_terminate_backend($1)").bind(mine);
    kill.execute(&db).await.unwrap();
    let lost = timeout(SOON, listener.try_recv()).await.unwrap().unwrap();
    assert!(lost.is_none(), "the caller is told of the loss");
    notify(&db, "cenote_killed", "after").await;

    let after = timeout(SOON, listener.recv()).await.unwrap().unwrap();
    assert_eq!(after.payload(), "after");
    assert_eq!(db.pool().status().in_use, 1);
}

#[tokio::test]
async fn a_listener_ends_with_its_handle() {
    let db = two("cenote_listener_ends");
    let mut listener = db.listener().await.unwrap();
    listener.listen("cenote_ends").await.unwrap();
    let waiting = tokio::spawn(async move { listener.recv().await });

    timeout(SOON, db.close()).await.unwrap();

    let ended = timeout(SOON, waiting).await.unwrap().unwrap();
    assert!(matches!(ended, Err(Error::PoolClosed)), "{ended:?}");
}

#[tokio::test]
async fn notifications_are_a_stream() {
    let db = two("cenote_listener_stream");
    let mut listener = db.listener().await.unwrap();
    listener
        .listen_all(["cenote_s1", "cenote_s2"])
        .await
        .unwrap();
    let mut stream = listener.into_stream();

    for (channel, payload) in [("cenote_s1", "a"), ("cenote_s2", "b")] {
        notify(&db, channel, payload).await;
        let next = timeout(SOON, stream.try_next()).await.unwrap().unwrap();
        let next = next.unwrap();
        assert_eq!((next.channel(), next.payload()), (channel, payload));
    }
    drop(stream);

    let back = db.pool().wait_for(|status| status.in_use == 0);
    timeout(SOON, back).await.unwrap();
}
