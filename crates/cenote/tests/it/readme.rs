//! The README shows what the code does.

use std::time::Duration;

use cenote_testkit::{Rig, clock};

const README: &str = include_str!("../../README.md");

#[tokio::test(start_paused = true)]
async fn the_timeout_error_in_the_readme_is_the_one_that_is_returned() {
    let rig = Rig::new(|pool| pool.name("orders").max_size(10));
    let mut leases = Vec::new();
    for _ in 0..7 {
        let pool = rig.pool.clone();
        let held = tokio::spawn(async move { pool.acquire().await });
        leases.push(held.await.unwrap());
    }
    let orders = line!() - 3;
    clock::advance(Duration::from_millis(6_600)).await;
    for _ in 0..3 {
        let pool = rig.pool.clone();
        let held = tokio::spawn(async move { pool.acquire().await });
        leases.push(held.await.unwrap());
    }
    let cart = line!() - 3;
    clock::advance(Duration::from_millis(800)).await;
    let other = rig.wait();

    let error = rig.pool.acquire().await.unwrap_err();

    drop(other);
    let text = error
        .to_string()
        .replace(&format!("{}:{orders}", file!()), "src/orders.rs:88")
        .replace(&format!("{}:{cart}", file!()), "src/cart.rs:31");
    assert!(README.contains(&text), "the README does not show: {text}");
}
