//! What the page keeps alive: nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use axum::Router;
use cenote::Pool;
use cenote_dashboard::Dashboard;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::rig::{Events, entry, get, pool};

#[tokio::test(start_paused = true)]
async fn the_page_keeps_no_pool_alive() {
    let open = Arc::new(AtomicUsize::new(0));
    struct Resource(Arc<AtomicUsize>);
    impl Drop for Resource {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Relaxed);
        }
    }
    let counted = Arc::clone(&open);
    let pool = Pool::from_fn(move || {
        counted.fetch_add(1, Relaxed);
        let resource = Resource(Arc::clone(&counted));
        async move { Ok::<_, &str>(resource) }
    });
    let pool = pool.name("life").build().unwrap();
    drop(pool.acquire().await.unwrap());
    let app: Router = Dashboard::new().routes();
    let path = format!("/api/events?pool={}", pool.number());
    let mut events = Events::of(&app, &path).await;
    events.next().await.unwrap();
    let detail = format!("/api/pools/{}", pool.number());
    assert_eq!(get(&app, &detail).await.status, 200);

    drop(pool);
    sleep(Duration::from_secs(10)).await;

    assert_eq!(open.load(Relaxed), 0, "its resource is closed");
    assert_eq!(get(&app, &detail).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_built_later_is_shown() {
    let app: Router = Dashboard::new().routes();
    let late = pool("life late", 7);

    assert_eq!(entry(&app, &late).await["max_size"], 7);
}

#[tokio::test(start_paused = true)]
async fn the_task_ends_and_no_observer_stays_behind() {
    let pool = pool("life task", 1);
    let tasks = || Handle::current().metrics().num_alive_tasks();
    // The pool has a task of its own after its first use.
    drop(pool.acquire().await.unwrap());
    let before = tasks();
    let app: Router = Dashboard::new().routes();
    let mut events = Events::of(&app, "/api/events").await;
    events.next().await.unwrap();
    assert_eq!(tasks(), before + 1);
    drop(events);

    drop(app);
    sleep(Duration::from_millis(1)).await;

    assert_eq!(tasks(), before);
    // An observer that stayed would be dropped with the pool only; a second page starts from zero.
    let app: Router = Dashboard::new().routes();
    let detail = get(&app, &format!("/api/pools/{}", pool.number()))
        .await
        .json();
    assert_eq!(detail["sites"], Value::Array(Vec::new()));
}

#[test]
fn the_routes_can_be_made_before_there_is_a_runtime() {
    let pool = pool("life early", 3);
    let app: Router = Dashboard::new().routes();
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
    };

    for _ in 0..2 {
        // The second runtime finds the task of the first one gone.
        runtime().block_on(async {
            let path = format!("/api/events?pool={}", pool.number());
            let mut events = Events::of(&app, &path).await;
            assert_eq!(events.next().await.unwrap().name, "snapshot");
            assert_eq!(events.next().await.unwrap().name, "update");
            assert_eq!(entry(&app, &pool).await["max_size"], 3);
        });
    }
}
