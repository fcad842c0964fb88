//! The streams: what their frames say, who gets none, and what a slow client misses.

use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use cenote_dashboard::Dashboard;
use serde_json::json;
use tokio::time::sleep;

use super::rig::{Events, get, pool};

#[tokio::test(start_paused = true)]
async fn a_stream_begins_with_everything_and_goes_on_with_changes() {
    let pool = pool("stream one", 4);
    let app: Router = Dashboard::new().routes();
    let mut events = Events::of(&app, &format!("/api/events?pool={}", pool.number())).await;
    let first = events.next().await.unwrap();
    assert_eq!((first.id, first.name.as_str()), (0, "snapshot"));
    assert!(first.data["pool"]["history"].is_object() && first.data["config"].is_array());

    let _held = pool.acquire().await.unwrap();
    let mut next = events.next().await.unwrap();
    while next.data["pool"]["in_use"] == 0 {
        next = events.next().await.unwrap();
    }

    assert_eq!(next.name, "update");
    assert_eq!(next.data["frame"], json!(next.id));
    assert_eq!(next.data["events"][0]["kind"], "opened");
    assert!(next.data["config"].is_null(), "it has not changed");
    let after = events.next().await.unwrap();
    assert_eq!(after.id, next.id + 1);
    assert_eq!(after.data["events"], json!([]), "they were told");
    pool.resize(5).unwrap();
    let resized = events.next().await.unwrap();
    assert_eq!(resized.data["config"][0]["value"], "5");
}

#[tokio::test(start_paused = true)]
async fn the_list_of_all_pools_comes_several_times_a_second() {
    let pool = pool("stream all", 4);
    let app: Router = Dashboard::new()
        .interval(Duration::from_millis(200))
        .routes();
    let mut events = Events::of(&app, "/api/events").await;
    assert_eq!(events.next().await.unwrap().name, "snapshot");

    let start = tokio::time::sleep(Duration::ZERO).deadline();
    let mut samples = 0;
    for _ in 0..25 {
        let frame = events.next().await.unwrap();
        let mut pools = frame.data["pools"].as_array().unwrap().iter();
        let own = pools.find(|one| one["number"] == pool.number()).unwrap();
        assert!(own["history"].is_null());
        samples += u32::from(own["sample"].is_object());
    }

    let end = tokio::time::sleep(Duration::ZERO).deadline();
    assert!(end - start <= Duration::from_secs(6), "{:?}", end - start);
    assert!(
        (2..=3).contains(&samples),
        "{samples} samples in five seconds"
    );
}

#[tokio::test(start_paused = true)]
async fn all_clients_get_the_same_frame() {
    let app: Router = Dashboard::new().routes();
    let mut one = Events::of(&app, "/api/events").await;
    let mut other = Events::of(&app, "/api/events").await;
    one.next().await.unwrap();
    other.next().await.unwrap();

    let (first, second) = (one.next().await.unwrap(), other.next().await.unwrap());

    assert_eq!((first.id, first.data), (second.id, second.data));
}

#[tokio::test(start_paused = true)]
async fn a_client_too_many_gets_a_503_and_a_place_becomes_free() {
    let app: Router = Dashboard::new().max_clients(2).routes();
    let one = Events::of(&app, "/api/events").await;
    let mut two = Events::of(&app, "/api/events").await;
    two.next().await.unwrap();

    let refused = get(&app, "/api/events").await;

    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers["retry-after"], "5");
    assert!(refused.text().contains("max_clients"), "{}", refused.text());
    drop(one);
    let mut third = Events::of(&app, "/api/events").await;
    assert_eq!(third.next().await.unwrap().data["clients"], 2);
}

#[tokio::test(start_paused = true)]
async fn frames_that_a_slow_client_misses_are_counted() {
    let app: Router = Dashboard::new()
        .interval(Duration::from_millis(100))
        .routes();
    let mut slow = Events::of(&app, "/api/events").await;
    slow.next().await.unwrap();
    let before = slow.next().await.unwrap();
    assert_eq!(before.data["dropped_frames"], 0);

    sleep(Duration::from_secs(1)).await;

    let late = slow.next().await.unwrap();
    assert!(late.id - before.id > 8, "{} after {}", late.id, before.id);
    let next = slow.next().await.unwrap();
    // Three frames came: the one before, the late one and this one.
    assert_eq!(next.data["dropped_frames"], next.id - 3);
}

#[tokio::test(start_paused = true)]
async fn a_stream_tells_that_its_pool_is_gone_and_ends() {
    let pool = pool("stream gone", 1);
    let app: Router = Dashboard::new().routes();
    let mut events = Events::of(&app, &format!("/api/events?pool={}", pool.number())).await;
    events.next().await.unwrap();

    drop(pool);

    let mut last = events.next().await.unwrap();
    while last.name == "update" {
        last = events.next().await.unwrap();
    }
    assert_eq!(last.name, "gone");
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_page_ends_its_streams() {
    let page = Dashboard::new().start();
    let app: Router = page.routes();
    let mut events = Events::of(&app, "/api/events").await;
    events.next().await.unwrap();

    page.end();

    while events.next().await.is_some() {}
    let refused = get(&app, "/api/events").await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
}
