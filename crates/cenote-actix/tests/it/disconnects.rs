//! Clients that disconnect while a handler runs.

use tokio::net::TcpStream;

use crate::client::reset;
use crate::handlers::transactional_to;
use crate::rig::Rig;
use crate::server::Server;

/// Returns four clients, each of which waits for a handler that has written a row.
async fn four_waiting(rig: &Rig, server: &Server) -> Vec<TcpStream> {
    let mut clients = Vec::new();
    for id in 1..=4 {
        clients.push(server.send(&format!("/insert_and_wait/{id}")).await);
    }
    rig.until_at_gate(4).await;
    assert_eq!(rig.db().pool().status().in_use, 4);
    clients
}

#[tokio::test]
async fn a_connection_that_is_reset_rolls_back() {
    let rig = Rig::new("resets").await;
    let server = transactional_to(&rig, true);
    let clients = four_waiting(&rig, &server).await;

    clients.into_iter().for_each(reset);

    rig.until_whole().await;
    assert_eq!(rig.rows().await, 0);
}

#[tokio::test]
async fn a_connection_that_is_closed_rolls_back_if_it_must_not_be_half_closed() {
    let rig = Rig::new("closes").await;
    let server = transactional_to(&rig, false);
    let clients = four_waiting(&rig, &server).await;

    drop(clients);

    rig.until_whole().await;
    assert_eq!(rig.rows().await, 0);
}

#[tokio::test]
async fn a_connection_that_is_closed_may_be_half_closed_so_its_handler_ends_and_is_committed() {
    let rig = Rig::new("half_closes").await;
    let server = transactional_to(&rig, true);
    let clients = four_waiting(&rig, &server).await;

    drop(clients);
    rig.open_gate(4);

    rig.until_whole().await;
    assert_eq!(rig.rows().await, 4);
}
