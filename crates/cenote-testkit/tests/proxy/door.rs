//! New connections that meet refusal or silence.

use std::io::ErrorKind::{AddrInUse, ConnectionRefused, ConnectionReset};

use tokio::net::{TcpSocket, TcpStream};

use super::{World, until};

#[tokio::test]
async fn new_connections_are_refused_until_the_proxy_is_healed() {
    let (world, mut old) = World::with_client().await;

    world.proxy.refuse().await;
    let refused = TcpStream::connect(world.proxy.addr()).await;
    old.round_trip().await;
    world.proxy.heal().unwrap();

    assert_eq!(refused.unwrap_err().kind(), ConnectionRefused);
    world.connect().await.round_trip().await;
    old.round_trip().await;
    assert_eq!(world.proxy.counts().accepted, 2);
}

#[tokio::test]
async fn the_port_stays_taken_while_new_connections_are_refused() {
    let world = World::new().await;
    world.proxy.refuse().await;

    let other = TcpSocket::new_v4().unwrap();
    let taken = other.bind(world.proxy.addr());

    assert_eq!(taken.unwrap_err().kind(), AddrInUse);
}

#[tokio::test]
async fn refusing_and_healing_twice_is_the_same_as_once() {
    let world = World::new().await;

    for _ in 0..2 {
        world.proxy.refuse().await;
    }
    for _ in 0..2 {
        world.proxy.heal().unwrap();
    }

    world.connect().await.round_trip().await;
}

#[tokio::test]
async fn a_black_hole_takes_connections_and_never_answers() {
    let (world, mut old) = World::with_client().await;

    world.proxy.black_hole();
    let mut lost = world.connect().await;
    lost.say("hello?").await;
    lost.hears_nothing().await;
    old.round_trip().await;
    world.proxy.heal().unwrap();

    lost.hears_nothing().await;
    world.connect().await.round_trip().await;
    assert_eq!(world.proxy.counts().to_server, 12, "`hello?` is not there");

    world.proxy.reset();

    assert_eq!(lost.end().await, Err(ConnectionReset));
    until("all are gone", || world.proxy.counts().alive == 0).await;
}
