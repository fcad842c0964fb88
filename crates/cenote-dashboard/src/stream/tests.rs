//! Clients share frames, and a slow one keeps nothing alive but the newest.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::body::Bytes;
use futures_util::StreamExt;
use tokio::sync::Semaphore;

use super::{Client, Frame, Topic};

fn client(topic: &Topic, dropped: &Arc<AtomicU64>) -> Client {
    let places = Arc::new(Semaphore::new(1));
    Client {
        frames: topic.subscribe(),
        dropped: Arc::clone(dropped),
        place: places.try_acquire_owned().unwrap(),
    }
}

async fn read(client: Client, count: usize) -> Vec<Bytes> {
    let body = client.into_body(Frame::new(0, "snapshot", &"first"));
    let pieces = body.into_data_stream().take(count);
    pieces.map(Result::unwrap).collect().await
}

#[tokio::test]
async fn all_clients_share_the_bytes_of_a_frame() {
    let (topic, dropped) = (Topic::new(None), Arc::default());
    let (one, other) = (client(&topic, &dropped), client(&topic, &dropped));
    topic.send(Frame::new(1, "update", &"second"));

    let (one, other) = (read(one, 2).await, read(other, 2).await);

    assert_eq!(&*one[0], b"id: 0\nevent: snapshot\ndata: \"first\"\n\n");
    assert_eq!(&*one[1], b"id: 1\nevent: update\ndata: \"second\"\n\n");
    assert_eq!(one[1].as_ptr(), other[1].as_ptr(), "it was encoded once");
    assert_eq!(dropped.load(Relaxed), 0);
}

#[tokio::test]
async fn a_slow_client_gets_the_newest_frame_and_the_others_are_counted() {
    let (topic, dropped) = (Topic::new(None), Arc::default());
    let slow = client(&topic, &dropped);
    for number in 1..=500 {
        topic.send(Frame::new(number, "update", &number));
    }

    let frames = read(slow, 2).await;

    assert!(frames[1].starts_with(b"id: 500\n"));
    assert_eq!(dropped.load(Relaxed), 499);
}
