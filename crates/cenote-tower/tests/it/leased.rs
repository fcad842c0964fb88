//! The extractor of a lease, on pools that are not databases.

use std::io;
use std::time::Duration;

use axum::Router;
use axum::extract::{FromRef, State};
use axum::routing::get;
use cenote::{Closures, Pool};
use cenote_tower::{Leased, ScopeLayer};

use crate::client::serve;

type Rooms = Closures<String>;

#[derive(Clone)]
struct App {
    rooms: Pool<Rooms>,
}

impl FromRef<App> for Pool<Rooms> {
    fn from_ref(app: &App) -> Self {
        app.rooms.clone()
    }
}

fn app() -> App {
    let rooms = Pool::from_fn(async || Ok::<_, io::Error>(String::new()));
    let rooms = rooms.max_size(1).acquire_timeout(Duration::from_secs(2));
    App {
        rooms: rooms.build().unwrap(),
    }
}

async fn enter(State(app): State<App>, mut room: Leased<Rooms>) -> String {
    room.push('x');
    let label = app.rooms.leases()[0].label.clone().unwrap();
    format!("{} {label}", *room)
}

#[tokio::test]
async fn a_handler_gets_a_labelled_lease_and_gives_it_back() {
    let app = app();
    let routes = Router::new().route("/rooms/{id}", get(enter));
    let routes = routes.with_state(app.clone());

    for (routes, text) in [
        (routes.clone(), "x"),
        (routes.layer(ScopeLayer::new()), "xx"),
    ] {
        let server = serve(routes).await;
        let answer = server.get("/rooms/7").await;
        assert_eq!(answer.body, format!("{text} GET /rooms/{{id}}"));
        assert_eq!(app.rooms.status().in_use, 0);
    }
    assert_eq!(app.rooms.status().opened, 1);
}

#[tokio::test]
async fn a_pool_with_nothing_to_lend_is_a_503_before_the_handler_runs() {
    let app = app();
    let routes = Router::new().route("/rooms/{id}", get(enter));
    let server = serve(routes.with_state(app.clone())).await;
    let held = app.rooms.acquire().await.unwrap();

    let answer = server.get("/rooms/7").await;

    assert_eq!(answer.status, 503);
    assert!(answer.headers.contains_key("retry-after"));
    drop(held);
    assert_eq!(server.get("/rooms/7").await.status, 200);
}
