//! Messages of channels, on a lease.

use cenote_redis::Lease;
use redis::{AsyncCommands, PushKind, cmd};
use tokio::time::timeout;

use crate::admin::Admin;
use crate::{LIMIT, id, patient};

#[tokio::test]
async fn a_subscribed_lease_gets_messages_and_its_next_user_gets_none() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let url = format!("{}?protocol=resp3", server.url());
    let pool = patient(&url).max_size(1).build().unwrap();
    let mut lease = pool.acquire().await.unwrap();
    let first = id(&mut lease).await;
    let mut messages = lease.messages();

    cmd("SUBSCRIBE")
        .arg("news")
        .exec_async(&mut lease)
        .await
        .unwrap();
    let heard: usize = admin.say("PUBLISH news hello").await;

    assert_eq!(heard, 1);
    let kinds = [PushKind::Subscribe, PushKind::Message];
    for kind in kinds {
        let message = timeout(LIMIT, messages.recv()).await.unwrap().unwrap();
        assert_eq!(message.kind, kind);
    }

    Lease::release(lease).await;
    let mut next = pool.acquire().await.unwrap();
    assert_eq!(id(&mut next).await, first);
    let heard: usize = admin.say("PUBLISH news hello").await;
    assert_eq!(heard, 0, "the subscription is gone");
    let () = next.set("k", "v").await.unwrap();
    let value: String = next.get("k").await.unwrap();
    assert_eq!(value, "v", "answers fit their questions");
    assert!(timeout(LIMIT, messages.recv()).await.unwrap().is_none());
}

#[tokio::test]
async fn the_messages_of_a_killed_connection_end() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let url = format!("{}?protocol=resp3", server.url());
    let pool = patient(&url).build().unwrap();
    let mut lease = pool.acquire().await.unwrap();
    let mut messages = lease.messages();

    admin.kill(id(&mut lease).await).await;

    let rest = timeout(LIMIT, async { while messages.recv().await.is_some() {} });
    rest.await.expect("the messages end");
}

#[tokio::test]
async fn several_channels_in_one_command_are_refused() {
    let server = cenote_servers::redis::start().unwrap();
    let url = format!("{}?protocol=resp3", server.url());
    let pool = patient(&url).build().unwrap();
    let mut lease = pool.acquire().await.unwrap();

    let error = cmd("SUBSCRIBE")
        .arg("a")
        .arg("b")
        .exec_async(&mut lease)
        .await
        .unwrap_err();

    assert!(
        error.to_string().contains("one channel per command"),
        "{error}"
    );
}
