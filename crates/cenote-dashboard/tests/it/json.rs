//! What the JSON says about pools in a known state.

use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use cenote::{Lease, Pool};
use cenote_dashboard::Dashboard;
use serde_json::{Value, json};

use super::rig::{entry, get, pool};

fn app() -> Router {
    Dashboard::new().routes()
}

/// The names of all fields of an object, in order.
fn names(object: &Value) -> Vec<&str> {
    let object = object.as_object().unwrap();
    object.keys().map(String::as_str).collect()
}

#[tokio::test(start_paused = true)]
async fn the_list_has_every_pool_with_its_numbers() {
    let orders = pool("json orders", 3);
    let app = app();
    let _held = orders.acquire().await.unwrap();
    drop(orders.acquire().await.unwrap());

    let mut entry = entry(&app, &orders).await;

    let history = entry.as_object_mut().unwrap().remove("history").unwrap();
    assert_eq!(
        entry,
        json!({
            "number": orders.number(),
            "name": "json orders",
            "health": {"verdict": "healthy", "ready": true, "text": "healthy"},
            "breaker": "active",
            "suspended": false,
            "max_size": 3,
            "total": 2,
            "in_use": 1,
            "idle": 1,
            "opening": 0,
            "checking": 0,
            "cleaning": 0,
            "closing": 0,
            "reserved": 0,
            "waiting": 0,
            "oldest_wait_ms": null,
            "acquired": 2,
            "timed_out": 0,
            "leaked": 0,
        })
    );
    assert_eq!(
        names(&history),
        [
            "acquired_per_second",
            "every_ms",
            "in_use",
            "max_size",
            "time_ms",
            "waiting"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_head_tells_the_settings_and_the_clients() {
    let all = get(&app(), "/api/pools").await.json();

    for (name, value) in [
        ("version", json!(env!("CARGO_PKG_VERSION"))),
        ("interval_ms", json!(250)),
        ("actions", json!(false)),
        ("clients", json!(0)),
        ("max_clients", json!(32)),
        ("dropped_frames", json!(0)),
        ("frame", json!(0)),
    ] {
        assert_eq!(all[name], value, "{name}");
    }
    assert_eq!(all["instance"].as_str().unwrap().len(), 16);
    assert!(all["time_ms"].as_u64().unwrap() > 1_700_000_000_000);
}

#[tokio::test(start_paused = true)]
async fn one_pool_is_told_with_slots_holders_waiters_and_settings() {
    let pool = Pool::from_fn(async || Ok::<_, &str>(())).name("json one");
    let leak_after = Duration::from_secs(4);
    let pool = pool.max_size(2).leak_after(leak_after).build().unwrap();
    let app = app();
    let held = [pool.acquire().await.unwrap(), pool.acquire().await.unwrap()];
    let line = line!() - 1;
    Lease::label(&held[0], "report of password=hunter2");
    let waiter = tokio::spawn({
        let pool = pool.clone();
        async move { drop(pool.acquire_within(Duration::from_secs(60)).await) }
    });
    tokio::time::sleep(Duration::from_secs(5)).await;

    let detail = get(&app, &format!("/api/pools/{}", pool.number()))
        .await
        .json();

    let site = format!("{}:{line}", file!());
    let slots = detail["slots"].as_array().unwrap();
    assert_eq!(slots.len(), 2);
    assert_eq!(
        (&slots[0]["state"], &slots[0]["leaked"]),
        (&json!("leased"), &json!(true))
    );
    assert_eq!(
        names(&slots[0]),
        ["leaked", "number", "resource", "since_ms", "state"]
    );
    let holders = detail["holders"].as_array().unwrap();
    assert_eq!(holders.len(), 2, "one has a label");
    let labelled = holders
        .iter()
        .find(|one| one["label"] != Value::Null)
        .unwrap();
    assert_eq!(labelled["label"], "report of password=***");
    assert_eq!(
        (&labelled["site"], &labelled["count"]),
        (&json!(site), &json!(1))
    );
    assert_eq!(
        (&labelled["longest_ms"], &labelled["leaked"]),
        (&json!(5000.0), &json!(true))
    );
    assert_eq!(
        names(labelled),
        [
            "claimed",
            "count",
            "label",
            "leaked",
            "longest_ms",
            "resource",
            "site",
            "task",
            "used",
            "used_ms",
        ]
    );
    let waiters = detail["waiters"].as_array().unwrap();
    assert_eq!(
        (waiters.len(), &waiters[0]["waited_ms"]),
        (1, &json!(5000.0))
    );
    let changed = detail["config"].as_array().unwrap().iter();
    let changed: Vec<_> = changed.filter(|one| one["changed"] == true).collect();
    assert_eq!(
        changed,
        [
            &json!({"name": "max_size", "value": "2", "default": "10", "changed": true}),
            &json!({"name": "leak_after", "value": "4s", "default": "30s", "changed": true}),
        ]
    );
    let advice = detail["advice"][0].as_str().unwrap();
    assert!(
        advice.contains(&site) && !advice.contains("hunter2"),
        "{advice}"
    );
    waiter.abort();
}

#[tokio::test(start_paused = true)]
async fn one_pool_is_told_with_totals_reasons_sites_and_events() {
    let pool = pool("json counts", 2);
    let app = app();
    Lease::discard(pool.acquire().await.unwrap());
    drop(pool.acquire().await.unwrap());
    pool.resize(5).unwrap();
    pool.close();
    assert!(pool.acquire().await.is_err());

    let detail = get(&app, &format!("/api/pools/{}", pool.number()))
        .await
        .json();

    let totals = &detail["totals"];
    for (name, value) in [
        ("acquired", 2),
        ("discarded", 1),
        ("opened", 2),
        ("refused", 1),
    ] {
        assert_eq!(totals[name], value, "{name}");
    }
    let count = |list: &str, reason: &str| {
        let mut all = detail[list].as_array().unwrap().iter();
        let found = all.find(|one| one["reason"] == reason);
        found.map(|one| one["count"].as_u64().unwrap())
    };
    assert_eq!(count("closes", "discarded"), Some(1));
    assert_eq!(count("closes", "lifetime"), Some(0));
    assert_eq!(count("refusals", "closed"), Some(1));
    let sites = detail["sites"].as_array().unwrap();
    assert_eq!(sites.len(), 2);
    assert_eq!(
        names(&sites[0]),
        [
            "acquired",
            "held_ms",
            "others",
            "site",
            "timed_out",
            "waited_ms"
        ]
    );
    let events = detail["events"].as_array().unwrap();
    let kinds: Vec<_> = events
        .iter()
        .map(|one| one["kind"].as_str().unwrap())
        .collect();
    for kind in [
        "opened",
        "discarded",
        "closed",
        "resized",
        "pool_closed",
        "refused",
    ] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    let resized = events.iter().find(|one| one["kind"] == "resized").unwrap();
    assert_eq!(resized["text"], "2 to 5");
    assert_eq!(
        names(resized),
        [
            "count", "id", "kind", "level", "resource", "site", "text", "time_ms", "took_ms"
        ]
    );
}

#[tokio::test]
async fn an_unknown_pool_is_a_404_in_json() {
    for path in [
        "/api/pools/999999",
        "/api/pools/x",
        "/api/events?pool=999999",
    ] {
        let read = get(&app(), path).await;

        assert_eq!(read.status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(read.json(), json!({"error": "no such pool"}));
    }
    let read = get(&app(), "/api/events?page=1").await;
    assert_eq!(read.status, StatusCode::BAD_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn the_history_grows_while_no_page_is_open() {
    let pool = pool("json history", 2);
    let app = app();
    let _held = pool.acquire().await.unwrap();
    for _ in 0..5 {
        drop(pool.acquire().await.unwrap());
        tokio::time::sleep(Duration::from_secs(2)).await;
    }

    let detail = get(&app, &format!("/api/pools/{}", pool.number()))
        .await
        .json();

    let history = &detail["pool"]["history"];
    let samples = history["in_use"].as_array().unwrap().len();
    assert!((4..=6).contains(&samples), "{history}");
    assert_eq!(history["in_use"][3], 1);
    assert_eq!(
        history["wait_ms"][3],
        json!({"p50": 0.0, "p95": 0.0, "p99": 0.0})
    );
    assert_eq!(history["acquired_per_second"][3], 0.5);
}
