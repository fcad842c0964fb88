//! A transaction per request.

use actix_web::dev::Service;
use actix_web::http::StatusCode;
use actix_web::web::{Data, get};
use actix_web::{App, error, rt};
use cenote::scope::Scope;
use cenote_actix::{Problem, Transactional};
use cenote_sqlx::{Isolation, TransactionOptions};

use crate::handlers::{routes, transactional};
use crate::rig::{Rig, assert_apart};
use crate::server::serve;

#[tokio::test]
async fn the_status_decides_whether_a_request_is_committed() {
    let rig = Rig::new("statuses").await;
    let server = transactional(&rig);
    let statuses = [
        (200, true),
        (201, true),
        (204, true),
        (302, true),
        (400, false),
        (404, false),
        (409, false),
        (500, false),
        (503, false),
    ];

    for (id, (status, _)) in (1..).zip(statuses) {
        let answer = server.get(&format!("/insert/{id}/{status}")).await;
        assert_eq!(answer.status, status);
    }

    let committed = statuses.iter().filter(|(_, committed)| *committed);
    assert_eq!(rig.rows().await, committed.count() as i64);
    rig.until_whole().await;
}

#[tokio::test]
async fn an_error_of_the_handler_rolls_back() {
    let rig = Rig::new("errors").await;
    let server = transactional(&rig);

    let answer = server.get("/insert_twice/1").await;

    assert_eq!(answer.status, 409);
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    assert_eq!(rig.rows().await, 0);
    rig.until_whole().await;
}

#[tokio::test]
async fn a_panic_rolls_back_and_the_worker_lives_on() {
    let rig = Rig::new("panics").await;
    let server = transactional(&rig);

    for id in 1..=10 {
        let path = format!("/insert_and_panic/{id}");
        assert!(
            server.try_get(&path).await.is_err(),
            "the connection is cut"
        );
    }

    assert_eq!(server.get("/insert/99/200").await.status, 200);
    assert_eq!(rig.rows().await, 1);
    rig.until_whole().await;
}

#[tokio::test]
async fn a_commit_that_fails_is_a_500_and_nothing_of_the_body_is_sent() {
    let rig = Rig::new("orphans").await;
    let server = transactional(&rig);

    let answer = server.get("/orphan/1").await;

    assert_eq!(answer.status, 500);
    assert!(!answer.body.contains("must not be sent"), "{}", answer.body);
    assert!(!answer.body.contains("cenote_"), "{}", answer.body);
    let children = rig.number("SELECT count(*) FROM {}_child").await.unwrap();
    assert_eq!(children, 0);
    rig.until_whole().await;
}

#[tokio::test]
async fn a_request_without_a_statement_acquires_nothing() {
    let rig = Rig::new("plain").await;
    let server = transactional(&rig);
    let before = rig.db().pool().status().acquired;

    for _ in 0..10 {
        assert_eq!(server.get("/plain").await.body, "hello");
    }

    assert_eq!(rig.db().pool().status().acquired, before);
}

#[tokio::test]
async fn concurrent_requests_have_a_connection_each_from_begin_to_commit() {
    let rig = Rig::new("concurrent").await;
    let server = transactional(&rig);
    let requests = (0..4).map(|_| {
        let client = server.client;
        tokio::spawn(async move { client.get("/backends").await.body })
    });
    let requests: Vec<_> = requests.collect();
    rig.until_at_gate(4).await;

    rig.open_gate(4);

    let mut seen = Vec::new();
    for request in requests {
        seen.push(request.await.unwrap());
    }
    assert_apart(&seen);
    rig.until_whole().await;
}

#[tokio::test]
async fn the_options_and_the_statuses_that_roll_back_can_be_changed() {
    let rig = Rig::new("options").await;
    let at_work = rig.clone();
    let server = serve(move || {
        let options = TransactionOptions::new().isolation(Isolation::Serializable);
        let middleware = Transactional::new(at_work.db().clone())
            .options(options)
            .rolls_back_if(|status| status == StatusCode::IM_A_TEAPOT);
        App::new()
            .configure(routes(&at_work))
            .route("/level", get().to(level))
            .wrap(middleware)
    });

    assert_eq!(server.get("/level").await.body, "1");
    assert_eq!(server.get("/insert/1/404").await.status, 404);
    assert_eq!(server.get("/insert/2/418").await.status, 418);

    assert_eq!(rig.rows().await, 1);
    rig.until_whole().await;
}

/// Returns 1 in a serializable transaction.
async fn level(rig: Data<Rig>) -> Result<String, Problem> {
    let level = "SELECT (current_setting('transaction_isolation') = 'serializable')::int::bigint";
    Ok(rig.number(level).await?.to_string())
}

#[tokio::test]
async fn an_error_of_a_service_inside_rolls_back_and_passes_unchanged() {
    let rig = Rig::new("services").await;
    let at_work = rig.clone();
    let server = serve(move || {
        App::new()
            .configure(routes(&at_work))
            .wrap_fn(|request, service| {
                let done = service.call(request);
                async move {
                    done.await?;
                    Err::<actix_web::dev::ServiceResponse, _>(error::ErrorGone("changed my mind"))
                }
            })
            .wrap(Transactional::new(at_work.db().clone()))
    });

    let answer = server.get("/insert/1/200").await;

    assert_eq!(
        (answer.status, answer.body.as_str()),
        (410, "changed my mind")
    );
    assert_eq!(rig.rows().await, 0);
    rig.until_whole().await;
}

#[tokio::test]
async fn a_statement_after_the_transaction_is_an_error() {
    let rig = Rig::new("late").await;
    let at_work = rig.clone();
    let (send, mut late) = tokio::sync::mpsc::unbounded_channel();
    let server = serve(move || {
        let send = send.clone();
        let spawns = move |rig: Data<Rig>| {
            let send = send.clone();
            async move {
                rig.insert(1).await?;
                let scope = Scope::current().unwrap();
                let later = scope.run(async move {
                    rig.wait_at_gate().await;
                    send.send(rig.insert(2).await.is_err()).unwrap();
                });
                rt::spawn(later);
                Ok::<_, Problem>("spawned")
            }
        };
        App::new()
            .configure(routes(&at_work))
            .route("/spawn", get().to(spawns))
            .wrap(Transactional::new(at_work.db().clone()))
    });

    assert_eq!(server.get("/spawn").await.status, 200);
    rig.open_gate(1);

    assert!(late.recv().await.unwrap(), "the late statement was run");
    assert_eq!(rig.rows().await, 1);
    rig.until_whole().await;
}
