//! `cenote fleet` on a fleet that a real PostgreSQL keeps.

use std::time::Duration;

use cenote_fleet::Fleet;
use cenote_postgres::tokio_postgres::Config;
use cenote_postgres::{Lease, Pool};
use cenote_servers::{Server, postgres};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::{cenote, json, refused, text};

/// What must happen happens long before this, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);
const TRIES: u32 = 600;

/// A member in this process.
struct Member {
    pool: Pool,
    fleet: Fleet,
}

impl Member {
    async fn join(url: &str, name: &str) -> Self {
        let mut options: Config = url.parse().unwrap();
        let joining = Fleet::postgres(&options, "orders").unwrap();
        options.application_name(joining.tag(name));
        let pool = Pool::with_options(options).acquire_timeout(LIMIT);
        let pool = pool.open_timeout(LIMIT).build().unwrap();
        let joining = joining.capacity(12).overhead(1);
        let fleet = joining.join(&pool).await.unwrap();
        Self { pool, fleet }
    }

    async fn hold(&self, count: usize) -> Vec<Lease> {
        let mut leases = Vec::new();
        for _ in 0..count {
            leases.push(self.pool.acquire().await.unwrap());
        }
        leases
    }
}

/// A server with a fleet of two members, of which the first holds three connections.
struct Scene {
    server: Server,
    runtime: Runtime,
    api: Member,
    batch: Member,
    _leases: Vec<Lease>,
}

impl Scene {
    fn new() -> Self {
        let server = postgres::start().unwrap();
        let runtime = Runtime::new().unwrap();
        let (api, batch, leases) = runtime.block_on(async {
            let api = Member::join(server.url(), "api").await;
            let batch = Member::join(server.url(), "batch").await;
            let leases = api.hold(3).await;
            (api, batch, leases)
        });
        Self {
            server,
            runtime,
            api,
            batch,
            _leases: leases,
        }
    }

    fn url(&self) -> &str {
        self.server.url()
    }
}

/// Reads the fleet until it is as expected.
#[track_caller]
fn until(url: &str, holds: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..TRIES {
        let (code, fleet) = json(&["fleet", url, "orders"]);
        assert_eq!(code, Some(0), "{fleet}");
        if holds(&fleet) {
            return fleet;
        }
        std::thread::sleep(PAUSE);
    }
    panic!(
        "never: {}",
        text(&cenote(&["fleet", url, "orders", "--once"]).stdout)
    );
}

fn member<'a>(fleet: &'a Value, id: &str) -> &'a Value {
    let mut members = fleet["members"].as_array().unwrap().iter();
    members.find(|member| member["id"] == id).unwrap()
}

#[test]
fn members_shares_demand_and_history_are_shown_without_joining() {
    let scene = Scene::new();
    let id = scene.api.fleet.id().to_string();

    // A control connection, three in use, and place for a canceller.
    let fleet = until(scene.url(), |fleet| member(fleet, &id)["wants"] == 5);

    assert_eq!(fleet["group"], "orders");
    assert_eq!(
        (&fleet["capacity"], &fleet["strays"]),
        (&12.into(), &0.into())
    );
    assert_eq!(fleet["members"].as_array().unwrap().len(), 2, "{fleet:#}");
    let api = member(&fleet, &id);
    assert_eq!((&api["name"], &api["floor"]), (&"api".into(), &3.into()));
    assert_eq!((&api["has"], &api["sessions"]), (&5.into(), &4.into()));
    assert_eq!(fleet["history"].as_array().unwrap().len(), 1);
    assert_eq!(scene.api.fleet.status().members.len(), 2, "none has joined");

    let output = cenote(&["fleet", scene.url(), "orders", "--once"]);
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let first = shown.lines().next().unwrap();
    assert!(first.starts_with("orders: 8 of 12 granted"), "{shown}");
    assert!(shown.contains(&id) && shown.contains("content"), "{shown}");
}

#[test]
fn a_member_that_leaves_while_it_is_watched_is_a_change() {
    let scene = Scene::new();
    let url = scene.url().to_owned();
    let watched = std::thread::spawn(move || {
        let args = ["fleet", &url, "orders", "--seconds", "6"];
        json(&args)
    });
    let Scene { runtime, batch, .. } = &scene;
    let id = batch.fleet.id().to_string();
    let reader = "select count(*) from pg_stat_activity \
         where application_name = 'cenote fleet reader'";
    runtime.block_on(async {
        let lease = batch.pool.acquire().await.unwrap();
        let mut tries = 0..TRIES;
        while lease.query_one(reader, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            assert!(tries.next().is_some(), "the reader has a name");
            tokio::time::sleep(PAUSE).await;
        }
        // It looks at once, and then twice a second.
        tokio::time::sleep(Duration::from_secs(1)).await;
    });

    let Scene {
        server: _server,
        runtime,
        batch,
        ..
    } = scene;
    runtime.block_on(batch.fleet.leave());

    let (code, fleet) = watched.join().unwrap();
    assert_eq!(code, Some(0), "{fleet}");
    let changes = fleet["changes"].as_array().unwrap();
    let left = format!("{id} has left");
    assert!(
        changes.iter().any(|change| change["text"] == *left),
        "{fleet:#}"
    );
    assert!(fleet["history"].as_array().unwrap().len() > 2, "{fleet:#}");
    assert_eq!(fleet["members"].as_array().unwrap().len(), 1);
}

#[cfg(all(unix, feature = "top"))]
#[test]
fn the_full_screen_view_shows_members_and_gives_the_terminal_back() {
    let scene = Scene::new();
    let args = ["fleet", scene.url(), "orders"];

    let shown = crate::terminal::shown_until(&args, "q: end", "q");

    assert!(shown[0].contains("cenote fleet postgres"), "{shown:#?}");
    let titles: Vec<&str> = shown[1].split_whitespace().collect();
    assert_eq!(titles[..3], ["│member", "name", "has"], "{shown:#?}");
    let all = shown.join("\n");
    assert!(all.contains("of # granted") && all.contains("api"), "{all}");
    assert!(all.contains("changes"), "{all}");
}

#[test]
fn a_group_that_is_not_there_is_one_line_with_those_that_are() {
    let scene = Scene::new();

    refused(
        &["fleet", scene.url(), "oders"],
        2,
        &["no group `oders`", "its groups are orders"],
    );
}

#[test]
fn a_database_without_fleets_is_one_line_with_the_fix() {
    let server = postgres::start().unwrap();

    refused(
        &["fleet", server.url(), "orders", "--json"],
        1,
        &["no table `cenote_fleet`", "check the database"],
    );
}

#[test]
fn a_server_that_does_not_run_is_one_line_with_the_fix() {
    refused(
        &["fleet", "postgres://app:secret@127.0.0.1:1/shop", "orders"],
        1,
        &[
            "postgres://app:***@127.0.0.1:1/shop",
            "check that the server runs",
        ],
    );
}
