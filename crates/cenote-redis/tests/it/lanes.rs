//! Lanes: how they are chosen, opened, replaced and closed.

use std::collections::HashSet;
use std::time::Duration;

use redis::{AsyncCommands, cmd};
use tokio::time::timeout;

use crate::admin::Admin;
use crate::{LIMIT, builder, eventually, id};

/// Stops the server for a while. The call returns when it has begun.
async fn pause(admin: &mut Admin) {
    let () = admin.say("CLIENT PAUSE 600000 WRITE").await;
}

#[tokio::test]
async fn all_callers_share_the_lanes() {
    let server = cenote_servers::redis::start().unwrap();
    let pool = builder(&server).mux(2).build().unwrap();
    let callers: Vec<_> = (0..200)
        .map(|_| {
            let mut pool = pool.clone();
            tokio::spawn(async move { id(&mut pool).await })
        })
        .collect();

    let mut ids = HashSet::new();
    for caller in callers {
        ids.insert(caller.await.unwrap());
    }

    assert!(ids.len() <= 2, "{ids:?}");
    eventually("both lanes are open", async || pool.lanes() == [0, 0]).await;
    assert_eq!(pool.status().opened, 2);
}

#[tokio::test]
async fn a_command_goes_to_the_lane_with_the_fewest_in_flight() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let mut pool = builder(&server).mux(2).build().unwrap();
    let () = pool.set("k", "v").await.unwrap();
    eventually("both lanes are open", async || {
        let () = pool.set("k", "v").await.unwrap();
        pool.lanes().len() == 2
    })
    .await;
    pause(&mut admin).await;

    let callers: Vec<_> = (0..10)
        .map(|_| {
            let mut pool = pool.clone();
            tokio::spawn(async move { pool.set::<_, _, ()>("k", "v").await })
        })
        .collect();

    eventually("five on each", async || pool.lanes() == [5, 5]).await;
    let () = admin.say("CLIENT UNPAUSE").await;
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
    assert_eq!(pool.lanes(), [0, 0]);
}

#[tokio::test]
async fn a_killed_lane_is_replaced_without_a_failed_command() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let mut pool = builder(&server).mux(1).build().unwrap();
    let first = id(&mut pool).await;

    admin.kill(first).await;
    eventually("the end is noticed", async || pool.lanes().is_empty()).await;

    assert_ne!(id(&mut pool).await, first);
}

#[tokio::test]
async fn an_invalidated_lane_answers_what_is_in_flight() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let mut pool = builder(&server).mux(1).build().unwrap();
    let first = id(&mut pool).await;
    pause(&mut admin).await;
    let mut caller = pool.clone();
    let set = tokio::spawn(async move { caller.set::<_, _, ()>("k", "v").await });
    eventually("it is in flight", async || pool.lanes() == [1]).await;

    pool.invalidate();

    assert_ne!(id(&mut pool).await, first, "new commands have a new lane");
    let () = admin.say("CLIENT UNPAUSE").await;
    set.await.unwrap().unwrap();
    let old = format!("id={first} ");
    eventually("the old lane is closed", async || {
        !admin
            .others()
            .await
            .iter()
            .any(|line| line.starts_with(&old))
    })
    .await;
}

#[tokio::test]
async fn an_old_lane_is_replaced_before_it_leaves() {
    let server = cenote_servers::redis::start().unwrap();
    let mut pool = builder(&server).mux(1);
    pool = pool.max_lifetime(Duration::from_millis(300));
    let mut pool = pool.build().unwrap();
    let first = id(&mut pool).await;

    eventually("there is another lane", async || {
        id(&mut pool).await != first
    })
    .await;
}

/// The commands behind the silent one would wait for it, too.
#[tokio::test]
async fn a_lane_that_does_not_answer_gets_no_more_commands() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let pool = builder(&server)
        .mux(1)
        .response_timeout(Duration::from_secs(3));
    let mut pool = pool.build().unwrap();
    let first = id(&mut pool).await;
    pause(&mut admin).await;

    let error = pool.set::<_, _, ()>("k", "v").await.unwrap_err();

    assert!(
        error.is_timeout() && error.to_string().contains("response_timeout"),
        "{error}"
    );
    assert_eq!(cenote_redis::classify(&error), cenote_redis::Class::Broken);
    assert_ne!(id(&mut pool).await, first);
    let () = admin.say("CLIENT UNPAUSE").await;
}

#[tokio::test]
async fn a_close_waits_for_the_commands_in_flight() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let mut pool = builder(&server).mux(1).build().unwrap();
    let () = pool.set("k", "v").await.unwrap();
    pause(&mut admin).await;
    let mut caller = pool.clone();
    let set = tokio::spawn(async move { caller.set::<_, _, ()>("k", "v").await });
    eventually("it is in flight", async || pool.lanes() == [1]).await;

    let left = pool.close_within(Duration::from_millis(50)).await;
    assert_eq!(left.leases.len(), 1);
    assert_eq!(left.leases[0].label.as_deref(), Some("a lane"));
    let () = admin.say("CLIENT UNPAUSE").await;

    set.await.unwrap().unwrap();
    let left = timeout(LIMIT, pool.close_within(LIMIT)).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn all_callers_are_told_why_no_lane_can_be_opened() {
    let mut server = cenote_servers::redis::start().unwrap();
    let pool = builder(&server).mux(2).build().unwrap();
    server.kill().unwrap();
    let callers: Vec<_> = (0..50)
        .map(|_| {
            let mut pool = pool.clone();
            tokio::spawn(async move { pool.get::<_, Option<String>>("k").await })
        })
        .collect();

    for caller in callers {
        let error = timeout(LIMIT, caller).await.unwrap().unwrap().unwrap_err();
        assert!(error.is_connection_refusal(), "{error}");
        assert!(cenote_redis::classify(&error).is_retryable());
    }

    server.restart().unwrap();
    let mut pool = pool;
    cmd("PING").exec_async(&mut pool).await.unwrap();
}
