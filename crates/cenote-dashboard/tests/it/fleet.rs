//! The panel of a fleet, as JSON and in a real browser.

use std::time::Duration;

use cenote_dashboard::Dashboard;
use cenote_fleet::{Fleet, Memory};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::accessibility::check;
use super::browser::Tab;
use super::rig::{AnyPool, Server, get, pool};

struct Two {
    busy: AnyPool,
    first: Fleet,
    second: Fleet,
}

/// A fleet of two pools, of which the first is shown.
async fn two(name: &str) -> Two {
    let engine = Memory::new();
    let (busy, calm) = (pool(name, 9), pool("fleet calm", 9));
    let join = || Fleet::on(engine.clone()).capacity(10);
    Two {
        first: join().name("api-3").weight(3).join(&busy).await.unwrap(),
        second: join().name("batch-1").floor(4).join(&calm).await.unwrap(),
        busy,
    }
}

/// Waits until the first member has seen this.
async fn until(fleet: &Fleet, holds: impl Fn(&cenote_fleet::FleetStatus) -> bool) {
    let limit = tokio::time::timeout(Duration::from_secs(30), async {
        while !holds(&fleet.status()) {
            sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(limit.await.is_ok(), "never: {:?}", fleet.status());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_json_of_a_pool_has_its_fleet() {
    let two = two("fleet json").await;
    until(&two.first, |status| status.granted == 5).await;
    let app = Dashboard::new().fleet(&two.first).routes();
    let path = format!("/api/pools/{}", two.busy.number());

    let fleet = get(&app, &path).await.json()["fleet"].take();

    let (here, other) = (two.first.id().to_string(), two.second.id().to_string());
    let facts = [
        "member", "capacity", "granted", "share", "learned", "disputed", "error",
    ];
    let facts = facts.map(|fact| fleet[fact].clone());
    let expected = json!([here, 10, 5, 1, true, false, null]);
    assert_eq!(Value::from(facts.to_vec()), expected);
    let expected = json!([
        {"id": other, "name": "batch-1", "here": false, "has": 4, "wants": 0, "floor": 4,
            "weight": 1, "fenced": false},
        {"id": here, "name": "api-3", "here": true, "has": 1, "wants": 0, "floor": 1,
            "weight": 3, "fenced": false},
    ]);
    assert_eq!(fleet["members"], expected);
    assert!(fleet["history"]["granted"].is_array(), "{fleet}");

    two.first.leave().await;
    let gone = get(&app, &path).await.json();
    assert!(gone["fleet"].is_null(), "it has left");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_panel_follows_the_fleet_and_can_be_read_by_all() {
    let two = two("fleet page").await;
    let server = Server::start(Dashboard::new().fleet(&two.first));
    let tab = Tab::open(&server.url(&format!("/live#/pool/{}", two.busy.number()))).await;
    let members = "[...document.querySelectorAll('.fleet tbody tr')]
        .map((row) => [...row.cells].map((cell) => cell.innerText))";
    tab.until(&format!("{members}.length === 2")).await;
    let held = [
        two.busy.acquire().await.unwrap(),
        two.busy.acquire().await.unwrap(),
        two.busy.acquire().await.unwrap(),
    ];
    tab.until(&format!("{members}[1][1] === '3'")).await;

    let expected = json!([
        ["batch-1", "4", "0", "4", "1", "renews"],
        ["api-3", "3", "3", "1", "3", "this process"],
    ]);
    assert_eq!(tab.eval(members).await, expected);
    let hint = tab.text(".fleet .hint").await;
    assert_eq!(hint, "7 of 10 out, share here 3");
    tab.until("document.querySelector('.fleet .plot .in_use').getAttribute('d').length > 10")
        .await;
    for theme in ["light", "dark"] {
        tab.prefer("prefers-color-scheme", theme).await;
        for width in [1280, 360] {
            tab.size(width, 900).await;
            tab.until("document.querySelector('.fleet .plot text')")
                .await;
            check(&tab, &format!("fleet, {theme}, {width}")).await;
        }
    }

    drop(held);
    two.first.leave().await;
    tab.until("[...document.querySelectorAll('.fleet')].every((node) => node.hidden)")
        .await;
    tab.assert_content();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_without_a_fleet_has_no_panel() {
    let plain = pool("fleet none", 2);
    let server = Server::start(Dashboard::new());
    let tab = Tab::open(&server.url(&format!("/live#/pool/{}", plain.number()))).await;

    tab.until("document.querySelectorAll('.slots .cell').length === 2")
        .await;

    let shown = "[...document.querySelectorAll('.fleet')].filter((node) => !node.hidden).length";
    assert_eq!(tab.eval(shown).await, 0);
    tab.assert_content();
}
