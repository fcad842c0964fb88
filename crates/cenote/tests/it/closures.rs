//! Pools of closures: a cheap look at a resource on the thread that returns it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cenote::{Builder, CloseReason, Closures, Pool};
use cenote_testkit::clock::settle;

fn texts() -> Builder<Closures<String>> {
    Pool::from_fn(async || Ok::<_, &str>(String::new())).max_size(1)
}

/// Uses the only resource of the pool, and leaves this text in it.
async fn leave(pool: &Pool<Closures<String>>, text: &str) {
    let mut lease = pool.acquire().await.expect("one is free");
    lease.push_str(text);
}

#[tokio::test]
async fn a_broken_resource_is_closed_at_its_return() {
    let pool = texts()
        .is_broken_with(|text| text.contains("broken"))
        .build()
        .unwrap();

    leave(&pool, "good").await;
    assert_eq!(pool.status().idle, 1);
    leave(&pool, ", broken").await;

    assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
    assert_eq!(*pool.acquire().await.unwrap(), "");
}

#[tokio::test]
async fn a_resource_is_cleaned_at_once_and_needs_no_task() {
    let looks = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&looks);
    let clean = move |text: &mut String| {
        count.fetch_add(1, Ordering::Relaxed);
        text.clear();
        true
    };
    let pool = texts().clean_with(clean).build().unwrap();

    leave(&pool, "left over").await;

    assert_eq!(pool.status().idle, 1, "before any task could run");
    assert_eq!(pool.try_acquire().unwrap().as_deref(), Some(&String::new()));
    assert_eq!(looks.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_clean_resource_is_not_cleaned() {
    let clean = |_: &mut String| panic!("it is clean");
    let pool = texts()
        .needs_cleaning_with(|text| !text.is_empty())
        .clean_with(clean);
    let pool = pool.build().unwrap();

    leave(&pool, "").await;

    assert_eq!(pool.status().idle, 1);
}

#[tokio::test]
async fn a_resource_that_cannot_be_cleaned_is_closed() {
    let pool = texts().clean_with(|text| text.is_empty()).build().unwrap();

    leave(&pool, "stain").await;
    settle().await;

    assert_eq!(pool.status().closes.by(CloseReason::FailedClean), 1);
}

#[tokio::test]
async fn a_clean_that_works_at_the_second_try_saves_the_resource() {
    let tries = AtomicUsize::new(0);
    let clean = move |_: &mut String| tries.fetch_add(1, Ordering::Relaxed) > 0;
    let pool = texts().clean_with(clean).build().unwrap();

    leave(&pool, "stain").await;
    settle().await;

    assert_eq!(pool.status().idle, 1);
}

#[tokio::test]
async fn a_resource_that_needs_cleaning_where_nothing_cleans_is_closed() {
    let pool = texts()
        .needs_cleaning_with(|text| !text.is_empty())
        .build()
        .unwrap();

    leave(&pool, "").await;
    assert_eq!(pool.status().idle, 1);
    leave(&pool, "stain").await;
    settle().await;

    assert_eq!(pool.status().closes.by(CloseReason::FailedClean), 1);
}

#[tokio::test]
async fn a_look_that_panics_closes_the_resource() {
    for broken in [true, false] {
        let look = |_: &mut String| panic!("a user's bug");
        let pool = match broken {
            true => texts().is_broken_with(look),
            false => texts().clean_with(look),
        };
        let pool = pool.build().unwrap();

        leave(&pool, "").await;
        settle().await;

        assert_eq!(pool.status().closes.by(CloseReason::Broken), 1);
    }
}
