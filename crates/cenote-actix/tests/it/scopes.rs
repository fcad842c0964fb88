//! A scope per request.

use actix_web::App;
use actix_web::web::{Data, get};
use cenote::scope::{Bound, Scope};
use cenote_actix::{Problem, RequestScope};

use crate::client::reset;
use crate::handlers::routes;
use crate::rig::Rig;
use crate::server::{Server, serve};

fn scoped(rig: &Rig, scope: RequestScope) -> Server {
    let rig = rig.clone();
    serve(move || {
        App::new()
            .configure(routes(&rig))
            .route("/pin", get().to(pin))
            .route("/pin_and_wait", get().to(pin_and_wait))
            .route("/pin_and_panic", get().to(pin_and_panic))
            .route("/label", get().to(label))
            .wrap(scope)
            .wrap(RequestScope::new())
    })
}

/// Pins a connection, and returns whether the next statement has the same one.
async fn pin(rig: Data<Rig>) -> Result<String, Problem> {
    let first = rig.backend_of_pinned().await?;
    Ok((first == rig.backend().await?).to_string())
}

async fn pin_and_wait(rig: Data<Rig>) -> Result<String, Problem> {
    rig.backend_of_pinned().await?;
    rig.wait_at_gate().await;
    Ok(String::new())
}

async fn pin_and_panic(rig: Data<Rig>) -> Result<String, Problem> {
    rig.backend_of_pinned().await?;
    panic!("a handler with a bug");
}

async fn label(rig: Data<Rig>) -> Result<String, Problem> {
    let scope = Scope::current().unwrap();
    let _bound = rig.db().pool().bind().await?;
    let leases = rig.db().pool().leases();
    assert_eq!(leases[0].label.as_deref(), scope.label().as_deref());
    Ok(leases[0].label.as_deref().unwrap_or_default().to_owned())
}

impl Rig {
    async fn backend_of_pinned(&self) -> Result<i64, Problem> {
        let mut bound = self.db().pool().bind().await?;
        Bound::pin(&mut bound);
        drop(bound);
        Ok(self.backend().await?)
    }
}

#[tokio::test]
async fn a_pinned_connection_stays_with_its_request_and_goes_back_with_it() {
    let rig = Rig::new("pins").await;
    let server = scoped(&rig, RequestScope::new());

    for _ in 0..10 {
        assert_eq!(server.get("/pin").await.body, "true");
    }

    rig.until_whole().await;
}

#[tokio::test]
async fn a_pinned_connection_goes_back_after_a_panic_and_a_disconnect() {
    let rig = Rig::new("scope_ends").await;
    let server = scoped(&rig, RequestScope::new());

    assert!(server.try_get("/pin_and_panic").await.is_err());
    let clients = [
        server.send("/pin_and_wait").await,
        server.send("/pin_and_wait").await,
    ];
    rig.until_at_gate(2).await;
    assert!(rig.db().pool().status().in_use >= 2);
    clients.into_iter().for_each(reset);

    rig.until_whole().await;
}

#[tokio::test]
async fn a_request_that_uses_no_connection_acquires_none() {
    let rig = Rig::new("scope_plain").await;
    let server = scoped(&rig, RequestScope::new().keep_resources());
    let before = rig.db().pool().status().acquired;

    assert_eq!(server.get("/plain").await.body, "hello");

    assert_eq!(rig.db().pool().status().acquired, before);
}

#[tokio::test]
async fn a_lease_is_labelled_with_the_method_and_the_route() {
    let rig = Rig::new("labels").await;
    let server = scoped(&rig, RequestScope::new());

    assert_eq!(server.get("/label?secret=1").await.body, "GET /label");

    rig.until_whole().await;
}

#[tokio::test]
async fn a_request_can_keep_one_connection_until_its_end() {
    let rig = Rig::new("keeps").await;
    let at_work = rig.clone();
    let server = serve(move || {
        let scope = RequestScope::new().keep_resources();
        App::new().configure(routes(&at_work)).wrap(scope)
    });
    let client = server.client;
    let request = tokio::spawn(async move { client.get("/backends").await.body });
    rig.until_at_gate(1).await;
    assert_eq!(
        rig.db().pool().status().in_use,
        1,
        "it is kept between two statements"
    );

    rig.open_gate(1);

    let body = request.await.unwrap();
    let (first, second) = body.split_once(' ').unwrap();
    assert_eq!(first, second);
    rig.until_whole().await;
}
