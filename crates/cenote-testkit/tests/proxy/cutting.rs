//! Connections that end: by a reset, in good order, and in the middle of a reply.

use std::io::ErrorKind::{self, ConnectionReset};

use cenote_testkit::{Proxy, Then, Way};
use tokio::net::{TcpListener, TcpStream};

use super::{Client, World, until};

/// Asserts how both sides see a cut, and that a new connection works.
async fn assert_cut(cut: fn(&Proxy), client_sees: End<Vec<u8>>, server_sees: End<()>) {
    let (mut world, mut client) = World::with_client().await;

    cut(&world.proxy);

    assert_eq!(client.end().await, client_sees);
    assert_eq!(world.server_saw().await, server_sees);
    until("it is gone", || world.proxy.counts().alive == 0).await;
    world.connect().await.round_trip().await;
}

type End<T> = Result<T, ErrorKind>;

#[tokio::test]
async fn a_reset_is_a_reset_on_both_sides_and_spares_new_connections() {
    assert_cut(Proxy::reset, Err(ConnectionReset), Err(ConnectionReset)).await;
}

#[tokio::test]
async fn a_close_is_in_good_order_on_both_sides_and_spares_new_connections() {
    assert_cut(Proxy::close, Ok(Vec::new()), Ok(())).await;
}

#[tokio::test]
async fn a_close_is_in_good_order_also_with_bytes_in_flight() {
    let world = World::new().await;
    let mut client = world.connect().await;
    world.proxy.stall(Way::Both);
    client.say(&"x".repeat(100_000)).await;
    client.hears_nothing().await;

    world.proxy.close();

    assert_eq!(client.end().await, Ok(Vec::new()));
    tokio::time::sleep(super::QUIET).await;
    client.say("no reset has come").await;
}

#[tokio::test]
async fn a_cut_is_not_undone_by_healing_at_once() {
    let (world, mut client) = World::with_client().await;

    world.proxy.reset();
    world.proxy.heal().unwrap();

    assert_eq!(client.end().await, Err(ConnectionReset));
}

#[tokio::test]
async fn a_stalled_connection_can_be_reset() {
    let (mut world, mut client) = World::with_client().await;
    world.proxy.stall(Way::Both);
    client.say("never").await;

    world.proxy.reset();

    assert_eq!(client.end().await, Err(ConnectionReset));
    assert_eq!(world.server_saw().await, Err(ConnectionReset));
    assert_eq!(world.proxy.counts().to_server, 4);
}

#[tokio::test]
async fn a_reply_is_cut_in_its_middle() {
    let world = World::new().await;
    let mut client = world.connect().await;

    world.proxy.after(Way::ToClient, 3, Then::Close);
    client.say("hello").await;

    assert_eq!(client.end().await, Ok(b"hel".to_vec()));

    world.proxy.after(Way::ToClient, 3, Then::Reset);
    let mut client = world.connect().await;
    client.say("hello").await;

    client.hear("hel").await;
    assert_eq!(client.end().await, Err(ConnectionReset));
    assert_eq!(world.proxy.counts().to_client, 6);
}

#[tokio::test]
async fn a_cut_after_some_bytes_counts_from_the_call_and_for_each_connection() {
    let world = World::new().await;
    let (mut first, mut second) = (world.connect().await, world.connect().await);
    first.round_trip().await;

    world.proxy.after(Way::ToServer, 4, Then::Reset);
    for client in [&mut first, &mut second] {
        client.say("ping").await;
    }

    for client in [&mut first, &mut second] {
        assert_eq!(client.end().await, Err(ConnectionReset));
    }
    assert_eq!(world.proxy.counts().to_server, 12);
}

#[tokio::test]
async fn after_no_byte_at_all_the_cut_comes_at_once() {
    let (world, mut old) = World::with_client().await;

    world.proxy.after(Way::ToClient, 0, Then::Close);

    assert_eq!(old.end().await, Ok(Vec::new()));
    assert_eq!(world.connect().await.end().await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_client_that_resets_takes_the_servers_side_with_it() {
    let (mut world, client) = World::with_client().await;

    client.0.set_zero_linger().unwrap();
    drop(client);

    assert_eq!(world.server_saw().await, Err(ConnectionReset));
}

#[tokio::test]
async fn without_a_server_a_connection_is_reset() {
    let unused = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let proxy = Proxy::to(unused).await.unwrap();

    let mut client = Client(TcpStream::connect(proxy.addr()).await.unwrap());

    assert_eq!(client.end().await, Err(ConnectionReset));
}

#[tokio::test]
async fn a_dropped_proxy_takes_its_connections_and_its_port_along() {
    let (mut world, mut client) = World::with_client().await;
    let addr = world.proxy.addr();

    drop(std::mem::replace(
        &mut world.proxy,
        Proxy::to(addr).await.unwrap(),
    ));

    assert_eq!(client.end().await, Ok(Vec::new()));
    assert_eq!(world.server_saw().await, Ok(()));
    TcpListener::bind(addr).await.expect("the port is free");
}
