//! The scope of a request, on pools that are not databases.

use std::io;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use cenote::scope::{Bound, Scope};
use cenote::{Closures, Pool};
use cenote_tower::{ScopeLayer, Text};
use futures_util::stream;
use http::{Request, Response};
use http_body_util::BodyExt;
use tower::{Layer, ServiceExt, service_fn};

use crate::client::serve;

type Rooms = Pool<Closures<String>>;

fn rooms() -> Rooms {
    let pool = Pool::from_fn(async || Ok::<_, io::Error>(String::new()));
    pool.max_size(2).build().unwrap()
}

async fn write(pool: &Rooms, text: &str) {
    let mut bound = pool.bind().await.unwrap();
    bound.push_str(text);
    Bound::pin(&mut bound);
}

#[tokio::test]
async fn one_request_binds_resources_of_several_pools() {
    let (left, right) = (rooms(), rooms());
    let pools = (left.clone(), right.clone());
    let handler = move || {
        let (left, right) = pools.clone();
        async move {
            write(&left, "l").await;
            write(&right, "r").await;
            write(&left, "L").await;
            let (left, right) = (left.bind().await.unwrap(), right.bind().await.unwrap());
            format!("{} {}", **left, **right)
        }
    };
    let routes = Router::new().route("/", get(handler));
    let server = serve(routes.layer(ScopeLayer::new())).await;

    assert_eq!(server.get("/").await.body, "lL r");

    for pool in [left, right] {
        let status = pool.status();
        assert_eq!((status.in_use, status.opened), (0, 1));
    }
}

#[tokio::test]
async fn inside_a_scope_the_layer_opens_no_other() {
    let pool = rooms();
    cenote::scope(async {
        write(&pool, "outside").await;
        let service = service_fn(|_: Request<()>| async {
            let text = pool.bind().await.unwrap().clone();
            Ok::<_, io::Error>(Response::new(Text::from(text)))
        });
        let response = ScopeLayer::new().layer(service).oneshot(Request::new(()));
        assert_eq!(
            response.await.unwrap().into_body().into_inner().as_str(),
            "outside"
        );
        assert_eq!(pool.status().in_use, 1, "the outer scope goes on");
    })
    .await;
}

#[tokio::test]
async fn an_error_of_the_service_ends_the_scope() {
    let pool = rooms();
    let service = service_fn(|_: Request<()>| async {
        write(&pool, "begun").await;
        Err::<Response<Text>, _>(io::Error::other("no"))
    });

    let outcome = ScopeLayer::new().layer(service).oneshot(Request::new(()));

    assert!(outcome.await.is_err());
    assert_eq!(pool.status().in_use, 0);
}

#[tokio::test]
async fn a_body_in_memory_does_not_prolong_the_scope() {
    let pool = rooms();
    let service = service_fn(|_: Request<()>| async {
        write(&pool, "begun").await;
        Ok::<_, io::Error>(Response::new(Body::from("all of it")))
    });

    let response = ScopeLayer::new().layer(service).oneshot(Request::new(()));
    let response = response.await.unwrap();

    assert_eq!(
        pool.status().in_use,
        0,
        "the scope has ended, and the body is not sent yet"
    );
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.to_bytes(), "all of it");
}

#[tokio::test]
async fn the_scope_of_a_streaming_body_ends_with_its_last_part() {
    let pool = rooms();
    let service = service_fn(|_: Request<()>| async {
        write(&pool, "begun").await;
        let parts = stream::iter(["one", "two"].map(Ok::<_, io::Error>));
        Ok::<_, io::Error>(Response::new(Body::from_stream(parts)))
    });

    let response = ScopeLayer::new().layer(service).oneshot(Request::new(()));
    let mut body = response.await.unwrap().into_body();

    for part in ["one", "two"] {
        assert_eq!(pool.status().in_use, 1);
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), part);
    }
    assert!(body.frame().await.is_none());
    assert_eq!(
        pool.status().in_use,
        0,
        "the scope has ended, and the body is not dropped yet"
    );
}

#[tokio::test]
async fn a_scope_that_outlives_its_request_holds_nothing() {
    let pool = rooms();
    let (tell, told) = tokio::sync::oneshot::channel();
    let tell = std::sync::Mutex::new(Some(tell));
    let service = service_fn(|_: Request<()>| async {
        write(&pool, "begun").await;
        let tell = tell.lock().unwrap().take().unwrap();
        assert!(tell.send(Scope::current().unwrap()).is_ok());
        Ok::<_, io::Error>(Response::new(Text::default()))
    });

    let served = ScopeLayer::new().layer(service).oneshot(Request::new(()));
    drop(served.await.unwrap());
    let scope = told.await.unwrap();

    assert!(!scope.is_pinned(&pool));
    assert_eq!(pool.status().in_use, 0);
}
