//! Bytes that come late or not at all, on connections that stay open.

use std::time::Duration;

use cenote_testkit::clock::timed;
use cenote_testkit::{Then, Way};

use super::{World, until};

const DELAY: Duration = Duration::from_millis(40);

/// Bytes that are delayed by this never come.
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_delay_holds_every_chunk_of_its_way() {
    let world = World::new().await;
    let mut client = world.connect().await;

    for (way, least) in [
        (Way::ToServer, DELAY),
        (Way::ToClient, DELAY),
        (Way::Both, DELAY * 2),
    ] {
        world.proxy.delay(way, DELAY);
        for _ in 0..2 {
            let ((), took) = timed(client.round_trip()).await;

            assert!(took >= least, "{way:?}: {took:?}");
        }
        world.proxy.delay(way, Duration::ZERO);
    }
}

#[tokio::test]
async fn a_delay_of_one_way_leaves_the_other_alone() {
    for (way, to_server) in [(Way::ToServer, 0), (Way::ToClient, 5)] {
        let world = World::new().await;
        let mut client = world.connect().await;

        world.proxy.delay(way, HOUR);
        client.say("hello").await;
        client.hears_nothing().await;

        let counts = world.proxy.counts();
        assert_eq!((counts.to_server, counts.to_client), (to_server, 0));
    }
}

#[tokio::test]
async fn a_chunk_that_is_being_delayed_goes_on_when_the_delay_ends() {
    let world = World::new().await;
    let mut client = world.connect().await;
    world.proxy.delay(Way::ToClient, HOUR);
    client.say("late").await;
    client.hears_nothing().await;

    world.proxy.heal().unwrap();

    client.hear("late").await;
}

#[tokio::test]
async fn a_stall_holds_bytes_and_a_resume_delivers_them_in_order() {
    for way in [Way::ToServer, Way::ToClient, Way::Both] {
        let (world, mut client) = World::with_client().await;

        world.proxy.stall(way);
        client.say("one ").await;
        client.say("two").await;
        client.hears_nothing().await;
        world.proxy.resume(way);

        client.hear("one two").await;
        client.round_trip().await;
    }
}

#[tokio::test]
async fn a_stall_of_one_way_leaves_the_other_alone() {
    let world = World::new().await;
    let mut client = world.connect().await;

    world.proxy.stall(Way::ToClient);
    client.say("hello").await;
    until("the server has it", || world.proxy.counts().to_server == 5).await;

    client.hears_nothing().await;
    assert_eq!(world.proxy.counts().to_client, 0);
}

#[tokio::test]
async fn a_stall_holds_the_end_of_a_stream_too() {
    let (mut world, client) = World::with_client().await;

    world.proxy.stall(Way::ToServer);
    drop(client);
    tokio::time::sleep(super::QUIET).await;
    assert!(world.ends.try_recv().is_err(), "the server hears nothing");
    world.proxy.resume(Way::ToServer);

    assert_eq!(world.server_saw().await, Ok(()));
}

#[tokio::test]
async fn a_new_connection_stalls_like_an_old_one() {
    let world = World::new().await;
    world.proxy.stall(Way::Both);

    let mut client = world.connect().await;
    client.say("hello").await;
    client.hears_nothing().await;
    world.proxy.heal().unwrap();

    client.hear("hello").await;
}

#[tokio::test]
async fn half_open_loses_one_way_and_keeps_the_other() {
    let world = World::new().await;
    let mut client = world.connect().await;
    client.say("one").await;
    client.hear("one").await;

    world.proxy.lose(Way::ToClient);
    client.say("two").await;
    until("the server has it", || world.proxy.counts().to_server == 6).await;
    client.hears_nothing().await;
    world.proxy.heal().unwrap();
    client.say("three").await;

    // The reply to `two` is missing, so the one to `three` must not come.
    client.hears_nothing().await;
    world.connect().await.round_trip().await;
}

#[tokio::test]
async fn half_open_keeps_the_end_of_a_stream_from_the_server() {
    let (mut world, client) = World::with_client().await;

    world.proxy.lose(Way::ToServer);
    drop(client);
    tokio::time::sleep(super::QUIET).await;
    world.proxy.heal().unwrap();
    tokio::time::sleep(super::QUIET).await;
    let heard = world.ends.try_recv();
    world.proxy.reset();

    assert!(heard.is_err(), "the server believes in its client");
    assert!(world.server_saw().await.is_err());
}

#[tokio::test]
async fn a_slow_start_delays_the_first_bytes_of_new_connections() {
    let world = World::new().await;
    world.proxy.slow_start(4, DELAY * 5);
    let mut client = world.connect().await;

    let ((), first) = timed(client.round_trip()).await;
    let ((), second) = timed(client.round_trip()).await;

    assert!(first >= DELAY * 10, "{first:?}");
    assert!(second < DELAY * 10, "{second:?}");
}

#[tokio::test]
async fn a_slow_start_spares_old_connections() {
    let world = World::new().await;
    let mut old = world.connect().await;
    until("it is there", || world.proxy.counts().accepted == 1).await;

    world.proxy.slow_start(4, HOUR);
    let mut new = world.connect().await;
    new.say("ping").await;

    old.round_trip().await;
    new.hears_nothing().await;
    world.proxy.heal().unwrap();
    new.hear("ping").await;
}

#[tokio::test]
async fn after_its_bytes_a_connection_stalls_or_goes_deaf() {
    let world = World::new().await;
    let (mut stalled, mut deaf) = (world.connect().await, world.connect().await);

    world.proxy.after(Way::ToClient, 3, Then::Stall);
    stalled.say("hello").await;
    stalled.hear("hel").await;
    stalled.hears_nothing().await;
    world.proxy.resume(Way::ToClient);
    stalled.hear("lo").await;

    world.proxy.after(Way::ToClient, 3, Then::Lose);
    deaf.say("hello").await;
    deaf.hear("hel").await;
    deaf.hears_nothing().await;
    world.proxy.heal().unwrap();
    deaf.hears_nothing().await;
    stalled.round_trip().await;
}

#[tokio::test]
async fn each_limit_starts_its_own_count() {
    let world = World::new().await;
    let mut client = world.connect().await;

    for _ in 0..2 {
        world.proxy.after(Way::ToClient, 3, Then::Stall);
        client.say("hello").await;
        client.hear("hel").await;
        world.proxy.heal().unwrap();
        client.hear("lo").await;
    }
}

#[tokio::test]
async fn forgotten_connections_hear_nothing_and_new_ones_work() {
    for way in [Way::ToServer, Way::ToClient, Way::Both] {
        let (world, mut client) = World::with_client().await;

        world.proxy.forget(way);
        client.say("hello").await;
        client.hears_nothing().await;

        world.connect().await.round_trip().await;
        until("the new one is gone", || world.proxy.counts().alive == 1).await;
    }
}

#[tokio::test]
async fn frozen_connections_hold_their_bytes_and_new_ones_work() {
    for way in [Way::ToServer, Way::ToClient, Way::Both] {
        let (world, mut client) = World::with_client().await;

        world.proxy.freeze(way);
        client.say("hello").await;
        client.hears_nothing().await;
        world.connect().await.round_trip().await;
        world.proxy.heal().unwrap();

        client.hear("hello").await;
    }
}
