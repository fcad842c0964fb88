//! A program that waits is not blamed, and one that computes is.

use std::hint::black_box;

use tokio::task::yield_now;
use tokio::time::{interval, timeout};

use super::*;

/// Looks until the program is as busy as expected, which takes longer on a machine under load.
async fn until(client: &Client, is_so: fn(f64) -> bool) {
    let mut looks = interval(Duration::from_millis(10));
    let looking = async {
        while !is_so(client.part()) {
            looks.tick().await;
        }
    };
    let seen = timeout(Duration::from_secs(60), looking).await;
    assert!(seen.is_ok(), "never: {}", client.part());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_thread_that_works_is_busy() {
    let client = Client::start();

    let working = tokio::spawn(async {
        loop {
            black_box((0..black_box(100_000_u64)).sum::<u64>());
            yield_now().await;
        }
    });

    until(&client, |part| part > 0.6).await;
    working.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_thread_that_waits_is_not_busy() {
    let client = Client::start();

    let waiting = tokio::spawn(std::future::pending::<()>());

    until(&client, |part| part < 0.2).await;
    waiting.abort();
}

#[test]
fn only_a_program_without_time_left_is_blamed() {
    assert!(remark(0.4).is_none());
    assert!(remark(0.97).unwrap().contains("busy for 97 % of the time"));
}
