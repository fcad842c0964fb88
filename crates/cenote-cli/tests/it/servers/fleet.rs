//! `cenote fleet` on fleets that real servers keep.

mod places;

use std::time::Duration;

use cenote_servers::Server;
use places::{Member, Place};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::{cenote, json, refused, text};

const PAUSE: Duration = Duration::from_millis(50);
const TRIES: u32 = 600;

/// A server with a fleet of two members, of which the first holds three resources.
#[cfg_attr(
    not(feature = "postgres"),
    expect(dead_code, reason = "the fields only have to live")
)]
struct Scene {
    api: Member,
    batch: Member,
    runtime: Runtime,
    url: String,
    server: Server,
}

impl Scene {
    fn on<P: Place>() -> Self {
        let server = P::start();
        let runtime = Runtime::new().unwrap();
        let (url, api, batch) = runtime.block_on(async {
            let url = P::database(&server).await;
            P::prepare(&url).await;
            let api = P::join(&url, "api-3", 3).await;
            let batch = P::join(&url, "batch-1", 0).await;
            (url, api, batch)
        });
        Self {
            api,
            batch,
            runtime,
            url,
            server,
        }
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

#[track_caller]
fn members_shares_and_demand_are_shown_without_joining<P: Place>() {
    let scene = Scene::on::<P>();
    let id = scene.api.fleet.id().to_string();
    let counted = |count: u32| match P::COUNTS {
        true => Value::from(count),
        false => Value::Null,
    };
    let (floor, has) = (1 + P::OVERHEAD, 3 + P::OVERHEAD);

    let fleet = until(&scene.url, |fleet| member(fleet, &id)["wants"] == has);

    assert_eq!(
        (&fleet["group"], &fleet["capacity"]),
        (&"orders".into(), &12.into())
    );
    assert_eq!(fleet["strays"], counted(0));
    let members = fleet["members"].as_array().unwrap();
    assert_eq!(members.len(), 2, "the program has not joined: {fleet:#}");
    let api = member(&fleet, &id);
    assert_eq!(
        (&api["name"], &api["floor"]),
        (&"api-3".into(), &floor.into())
    );
    assert_eq!(api["has"], has, "{fleet:#}");
    // A control connection and three in use. There is no canceller now.
    assert_eq!(api["sessions"], counted(4), "{fleet:#}");
    assert_eq!(fleet["history"].as_array().unwrap().len(), 1);

    let output = cenote(&["fleet", &scene.url, "orders", "--once"]);
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let first = format!("orders: {} of 12 granted", floor + has);
    assert!(shown.starts_with(&first), "{shown}");
    assert!(shown.contains(&id) && shown.contains("content"), "{shown}");
    assert!(
        shown.contains("api-3") && shown.contains("batch-1"),
        "{shown}"
    );
}

/// A session of another program takes a part of the budget after a second. This one must not.
#[track_caller]
fn the_history_is_read_over_one_connection_that_no_member_counts<P: Place>() {
    let scene = Scene::on::<P>();

    let (code, fleet) = json(&["fleet", &scene.url, "orders", "--seconds", "3"]);

    assert_eq!(code, Some(0), "{fleet}");
    let history = fleet["history"].as_array().unwrap();
    assert!(history.len() > 2, "{fleet:#}");
    let last = history.last().unwrap();
    assert_eq!(
        (&last["members"], &last["granted"]),
        (&2.into(), &fleet["granted"])
    );
    assert_eq!(fleet["strays"].as_u64().unwrap_or(0), 0, "{fleet:#}");
}

#[track_caller]
fn what_is_not_there_is_one_line_with_the_fix<P: Place>() {
    let server = P::start();
    let url = Runtime::new().unwrap().block_on(P::database(&server));
    // A group that is missing is a typing error. A database without fleets is not.
    let code = if P::EMPTY.contains("no group") { 2 } else { 1 };
    refused(&["fleet", &url, "orders"], code, &[P::EMPTY]);
    drop(server);

    let scene = Scene::on::<P>();
    refused(&["fleet", &scene.url, "oders"], 2, &["no group `oders`"]);
    refused(&["fleet", &scene.url, "or ders"], 2, &["1 to 40 letters"]);
}

macro_rules! on {
    ($feature:literal, $module:ident, $place:ident) => {
        #[cfg(feature = $feature)]
        mod $module {
            use super::places::$place;

            #[test]
            fn members_shares_and_demand_are_shown_without_joining() {
                super::members_shares_and_demand_are_shown_without_joining::<$place>();
            }

            #[test]
            fn the_history_is_read_over_one_connection_that_no_member_counts() {
                super::the_history_is_read_over_one_connection_that_no_member_counts::<$place>();
            }

            #[test]
            fn what_is_not_there_is_one_line_with_the_fix() {
                super::what_is_not_there_is_one_line_with_the_fix::<$place>();
            }
        }
    };
}

on!("postgres", postgres, Postgres);
on!("mysql", mysql, Mysql);
on!("redis", redis, Redis);
on!("nats", nats, Nats);

#[cfg(feature = "postgres")]
#[test]
fn a_member_that_leaves_while_it_is_watched_is_a_change() {
    let scene = Scene::on::<places::Postgres>();
    let url = scene.url.clone();
    let watched = std::thread::spawn(move || {
        let args = ["fleet", &url, "orders", "--seconds", "8"];
        json(&args)
    });
    // Its first look ends with a count of the sessions.
    let looked = "select count(*) from pg_stat_activity \
         where application_name = 'cenote fleet reader' \
         and state = 'idle' and query like '%FROM pg_stat_activity%'";
    scene.runtime.block_on(async {
        let pool = cenote_postgres::Pool::from_url(&scene.url).build().unwrap();
        let mut tries = 0..TRIES;
        while pool.query_one(looked, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            assert!(tries.next().is_some(), "the reader has looked");
            tokio::time::sleep(PAUSE).await;
        }
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
    assert!(
        changes
            .iter()
            .any(|change| change["text"] == "batch-1 has left"),
        "{fleet:#}"
    );
    assert_eq!(fleet["members"].as_array().unwrap().len(), 1);
}

#[cfg(all(unix, feature = "postgres", feature = "top"))]
#[test]
fn the_full_screen_view_shows_members_and_gives_the_terminal_back() {
    let scene = Scene::on::<places::Postgres>();
    let args = ["fleet", &scene.url, "orders"];

    let shown = crate::terminal::shown_until(&args, "q: end", "q");

    assert!(shown[0].contains("cenote fleet postgres"), "{shown:#?}");
    let titles: Vec<&str> = shown[1].split_whitespace().collect();
    assert_eq!(titles[..3], ["│name", "member", "has"], "{shown:#?}");
    let all = shown.join("\n");
    assert!(all.contains("of # granted") && all.contains("api"), "{all}");
    assert!(all.contains("changes"), "{all}");
}

#[cfg(feature = "postgres")]
#[test]
fn a_group_that_is_not_there_is_one_line_with_those_that_are() {
    let scene = Scene::on::<places::Postgres>();

    let known = ["no group `oders`", "its groups are orders"];
    refused(&["fleet", &scene.url, "oders"], 2, &known);
}

#[test]
fn a_server_that_does_not_run_is_one_line_with_the_fix() {
    for (feature, scheme) in [
        (cfg!(feature = "postgres"), "postgres"),
        (cfg!(feature = "mysql"), "mysql"),
        (cfg!(feature = "redis"), "redis"),
        (cfg!(feature = "nats"), "nats"),
    ] {
        let url = format!("{scheme}://app:secret@127.0.0.1:1/0");
        let shown = format!("{scheme}://app:***@127.0.0.1:1/0");
        match feature {
            true => refused(
                &["fleet", &url, "orders"],
                1,
                &[&shown, "check that the server runs"],
            ),
            false => refused(
                &["fleet", &url, "orders"],
                2,
                &[&format!("`--features {scheme}`"), "`--features full`"],
            ),
        }
    }
}
