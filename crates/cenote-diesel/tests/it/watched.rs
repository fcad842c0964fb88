//! The instrumentation of a connection: the pool's own and the user's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cenote::CloseReason;
use cenote_diesel::diesel::connection::{InstrumentationEvent, set_default_instrumentation};
use cenote_diesel::diesel_async::{AsyncConnection, SimpleAsyncConnection};

use crate::world::{Lite, World, on_each_backend};
use crate::{next, pool};

on_each_backend!(
    the_instrumentation_of_the_user_gets_all_events,
    a_connection_whose_instrumentation_is_replaced_is_closed,
);

async fn the_instrumentation_of_the_user_gets_all_events<W: World>(name: &str) {
    let world = W::new(name).await;
    let count = Arc::new(AtomicUsize::new(0));
    let theirs = Arc::clone(&count);
    let manager = world.manager().instrumentation(move || {
        let count = Arc::clone(&theirs);
        move |event: InstrumentationEvent<'_>| {
            let is_start = matches!(event, InstrumentationEvent::StartQuery { .. });
            count.fetch_add(usize::from(is_start), Ordering::SeqCst);
        }
    });
    let pool = pool(manager, 1);

    let mut lease = pool.acquire().await.unwrap();
    lease.batch_execute("select 1").await.unwrap();
    assert_eq!(W::echo(&mut lease, 7).await, 7);

    assert_eq!(count.load(Ordering::SeqCst), 2);
}

/// Nothing is known about such a connection.
async fn a_connection_whose_instrumentation_is_replaced_is_closed<W: World>(name: &str) {
    let world = W::new(name).await;
    let pool = world.pool(1);
    let mut lease = pool.acquire().await.unwrap();
    lease.set_instrumentation(|_: InstrumentationEvent<'_>| {});
    lease.batch_execute("begin").await.unwrap();
    lease
        .batch_execute("insert into t values (1)")
        .await
        .unwrap();

    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(!is_same);
    assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
    assert!(!W::is_open(&mut lease).await);
    assert!(world.rows().await.is_empty());
}

/// The default is one for all tests of this program.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_default_of_diesel_is_used() {
    static MARKED: AtomicUsize = AtomicUsize::new(0);
    let default = || -> Option<Box<dyn cenote_diesel::diesel::connection::Instrumentation>> {
        Some(Box::new(|event: InstrumentationEvent<'_>| {
            if let InstrumentationEvent::StartQuery { query, .. } = event {
                let is_marked = query.to_string().contains("marked_by_this_test");
                MARKED.fetch_add(usize::from(is_marked), Ordering::SeqCst);
            }
        }))
    };
    set_default_instrumentation(default).unwrap();
    let world = Lite::new("").await;
    let mut lease = world.pool(1).acquire().await.unwrap();

    lease
        .batch_execute("select 1 as marked_by_this_test")
        .await
        .unwrap();

    assert_eq!(MARKED.load(Ordering::SeqCst), 1);
}
