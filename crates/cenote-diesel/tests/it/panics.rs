//! Users that panic, on this thread and on others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;

use cenote::Lease;
use cenote_diesel::diesel::result::Error;
use cenote_diesel::diesel_async::{AsyncConnection, SimpleAsyncConnection};

use crate::next;
use crate::world::{World, on_each_backend};

on_each_backend!(
    a_panic_in_a_transaction_rolls_it_back,
    a_lease_that_a_panicking_thread_returns_is_clean_for_the_next_thread,
    a_panic_on_another_thread_does_not_matter,
);

async fn a_panic_in_a_transaction_rolls_it_back<W: World>(name: &str) {
    let world = W::new(name).await;
    let pool = world.pool(1);
    let theirs = pool.clone();

    let task = tokio::spawn(async move {
        let mut lease = theirs.acquire().await.unwrap();
        let work = lease.transaction::<(), Error, _>(async |lease| {
            lease.batch_execute("insert into t values (1)").await?;
            panic!("as a user may");
        });
        work.await
    });

    assert!(task.await.unwrap_err().is_panic());
    let mut lease = pool.acquire().await.unwrap();
    assert!(!W::is_open(&mut lease).await);
    assert!(world.rows().await.is_empty());
}

/// diesel-async's manager for deadpool asks the next user's thread whether it panics.
async fn a_lease_that_a_panicking_thread_returns_is_clean_for_the_next_thread<W: World>(
    name: &str,
) {
    let world = W::new(name).await;
    let pool = world.pool(1);
    let mut lease = pool.acquire().await.unwrap();
    let id = Lease::id(&lease);
    lease.batch_execute("begin").await.unwrap();
    lease
        .batch_execute("insert into t values (1)")
        .await
        .unwrap();

    let panicked = catch_unwind(AssertUnwindSafe(move || {
        let _lease = lease;
        panic!("as a user may");
    }));

    assert!(panicked.is_err());
    let mut lease = pool.acquire().await.unwrap();
    assert_eq!(Lease::id(&lease), id, "it is kept");
    assert!(!W::is_open(&mut lease).await);
    assert!(world.rows().await.is_empty());
}

async fn a_panic_on_another_thread_does_not_matter<W: World>(name: &str) {
    /// Keeps its thread panicking until it is told to stop.
    struct Stop(mpsc::Sender<()>, mpsc::Receiver<()>);
    impl Drop for Stop {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
            self.1.recv().unwrap();
        }
    }

    let world = W::new(name).await;
    let pool = world.pool(1);
    let mut lease = pool.acquire().await.unwrap();
    let (begins, begun) = mpsc::channel();
    let (ends, ended) = mpsc::channel();
    let other = thread::spawn(move || {
        let _stop = Stop(begins, ended);
        panic!("as another user may");
    });
    begun.recv().unwrap();
    assert_eq!(W::echo(&mut lease, 7).await, 7);

    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(is_same);
    assert_eq!(W::echo(&mut lease, 8).await, 8);
    ends.send(()).unwrap();
    assert!(other.join().is_err());
}
