//! Callers that find the lanes full wait, in order, and are told what they wait for.

use std::time::Duration;

use cenote_redis::{Class, classify, is_timeout};
use redis::AsyncCommands;

use crate::admin::Admin;
use crate::{builder, eventually};

#[tokio::test]
async fn no_more_commands_are_in_flight_than_allowed_and_the_rest_wait_in_order() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let mut pool = builder(&server).mux(1).lane_depth(3).build().unwrap();
    let () = pool.set("k", "v").await.unwrap();
    let () = admin.say("CLIENT PAUSE 600000 WRITE").await;
    let mut callers = Vec::new();

    for number in 0..10_usize {
        let mut caller = pool.clone();
        callers.push(tokio::spawn(async move {
            let () = caller.rpush("list", number).await.unwrap();
        }));
        eventually("it is in line", async || {
            pool.lanes().iter().sum::<usize>() + pool.held_back() == number + 1
        })
        .await;
    }

    assert_eq!((pool.lanes(), pool.held_back()), (vec![3], 7));
    let () = admin.say("CLIENT UNPAUSE").await;
    for caller in callers {
        caller.await.unwrap();
    }
    let list: Vec<usize> = pool.lrange("list", 0, -1).await.unwrap();
    assert_eq!(
        list,
        (0..10).collect::<Vec<_>>(),
        "the server saw them in the order of the callers"
    );
}

#[tokio::test]
async fn a_caller_that_waits_too_long_is_told_what_for() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let pool = builder(&server).name("carts").mux(1).lane_depth(2);
    let mut pool = pool
        .acquire_timeout(Duration::from_secs(3))
        .build()
        .unwrap();
    let () = pool.set("k", "v").await.unwrap();
    let () = admin.say("CLIENT PAUSE 600000 WRITE").await;
    let callers: Vec<_> = (0..2)
        .map(|_| {
            let mut pool = pool.clone();
            tokio::spawn(async move { pool.set::<_, _, ()>("k", "v").await })
        })
        .collect();
    eventually("the lane is full", async || pool.lanes() == [2]).await;

    let error = pool.set::<_, _, ()>("k", "v").await.unwrap_err();

    let text = error.to_string();
    assert!(
        text.contains("carts") && text.contains("2 of 2 commands in flight"),
        "{text}"
    );
    assert!(
        text.contains("`lane_depth`") && text.contains("1 lanes"),
        "{text}"
    );
    assert!(is_timeout(&error) && classify(&error) == Class::Refused);
    let () = admin.say("CLIENT UNPAUSE").await;
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_full_queue_refuses_at_once() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let pool = builder(&server).mux(1).lane_depth(1).max_waiters(1);
    let mut pool = pool.build().unwrap();
    let () = pool.set("k", "v").await.unwrap();
    let () = admin.say("CLIENT PAUSE 600000 WRITE").await;
    let callers: Vec<_> = (0..2)
        .map(|_| {
            let mut pool = pool.clone();
            tokio::spawn(async move { pool.set::<_, _, ()>("k", "v").await })
        })
        .collect();
    eventually("one waits", async || pool.held_back() == 1).await;

    let error = pool.set::<_, _, ()>("k", "v").await.unwrap_err();

    assert!(error.to_string().contains("`max_waiters`"), "{error}");
    assert!(!is_timeout(&error) && classify(&error) == Class::Refused);
    let () = admin.say("CLIENT UNPAUSE").await;
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_cancelled_caller_gives_its_place_up() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let mut pool = builder(&server).mux(1).lane_depth(1).build().unwrap();
    let () = pool.set("k", "v").await.unwrap();
    let () = admin.say("CLIENT PAUSE 600000 WRITE").await;
    let mut caller = pool.clone();
    let first = tokio::spawn(async move { caller.set::<_, _, ()>("k", 1).await });
    eventually("the lane is full", async || pool.lanes() == [1]).await;

    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());

    let mut caller = pool.clone();
    let second = tokio::spawn(async move { caller.set::<_, _, ()>("k", 2).await });
    eventually("the place is taken again", async || pool.lanes() == [1]).await;
    let () = admin.say("CLIENT UNPAUSE").await;
    second.await.unwrap().unwrap();
    let value: u32 = pool.get("k").await.unwrap();
    assert_eq!(value, 2);
}

#[tokio::test]
async fn a_caller_that_waits_is_told_when_the_pool_is_closed() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let mut pool = builder(&server).mux(1).lane_depth(1).build().unwrap();
    let () = pool.set("k", "v").await.unwrap();
    let () = admin.say("CLIENT PAUSE 600000 WRITE").await;
    let (mut first, mut second) = (pool.clone(), pool.clone());
    let first = tokio::spawn(async move { first.set::<_, _, ()>("k", 1).await });
    eventually("the lane is full", async || pool.lanes() == [1]).await;
    let second = tokio::spawn(async move { second.set::<_, _, ()>("k", 2).await });
    eventually("one waits", async || pool.held_back() == 1).await;

    pool.close();

    let error = second.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("closed"), "{error}");
    let () = admin.say("CLIENT UNPAUSE").await;
    first.await.unwrap().unwrap();
}
