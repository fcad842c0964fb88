//! All layers in one call, and the mistakes that are noticed.

use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use cenote::scope::Scope;
use cenote_tower::{Problem, Stack, TransactionalLayer};
use http::StatusCode;
use tokio::sync::oneshot;

use super::Rig;
use crate::client::{serve, until};
use crate::reports::reporting;

/// Refuses to run outside of a transaction.
async fn careful(State(rig): State<Rig>) -> Result<StatusCode, Problem> {
    rig.db.require_transaction()?;
    rig.insert(1).await?;
    Ok(StatusCode::CONFLICT)
}

fn routes(rig: &Rig) -> Router {
    Router::new()
        .route("/careful", get(careful))
        .with_state(rig.clone())
}

async fn spawn(request: Request, next: Next) -> Response {
    tokio::spawn(next.run(request)).await.unwrap()
}

#[tokio::test]
async fn a_handler_that_requires_a_transaction_notices_wrong_wiring() {
    let rig = Rig::new("required").await;
    let layer = TransactionalLayer::new(rig.db.clone());
    let (problems, told) = reporting();
    let bad = [
        routes(&rig),
        // axum applies a layer to the routes that are there.
        Router::new().layer(layer.clone()).merge(routes(&rig)),
        routes(&rig).layer(from_fn(spawn)).layer(layer.clone()),
    ];
    let good = [
        routes(&rig).layer(layer),
        Stack::new(&rig.db).wrap(routes(&rig)),
    ];

    for app in bad {
        let answer = serve(app.layer(problems.clone()))
            .await
            .get("/careful")
            .await;
        assert_eq!(answer.status, 500);
        let problem = told.try_recv().unwrap();
        assert!(
            problem.report().contains("needs a transaction"),
            "{problem:?}"
        );
    }
    for app in good {
        assert_eq!(serve(app).await.get("/careful").await.status, 409);
    }

    assert_eq!(rig.rows().await, 0);
    rig.until_whole().await;
}

/// Runs a statement in the scope of the request, after its transaction has ended. Returns the text
/// of its error.
async fn late(rig: &Rig, layer: TransactionalLayer<super::world::DB>) -> Option<String> {
    let (tell, told) = oneshot::channel();
    let tell = std::sync::Arc::new(std::sync::Mutex::new(Some(tell)));
    let handler = move |State(rig): State<Rig>| async move {
        rig.insert(1).await.unwrap();
        let scope = Scope::current().unwrap();
        tokio::spawn(scope.run(async move {
            rig.wait_at_gate().await;
            let late = rig.insert(2).await;
            let tell = tell.lock().unwrap().take().unwrap();
            tell.send(late.err().map(|error| error.to_string()))
                .unwrap();
        }));
        "served"
    };
    let routes = Router::new()
        .route("/", get(handler))
        .with_state(rig.clone());
    let server = serve(routes.layer(layer)).await;
    assert_eq!(server.get("/").await.body, "served");
    rig.gate.add_permits(1);
    told.await.unwrap()
}

#[tokio::test]
async fn a_statement_after_the_transaction_is_refused_unless_it_is_allowed() {
    let rig = Rig::new("late").await;
    let layer = TransactionalLayer::new(rig.db.clone());

    let refused = late(&rig, layer.clone()).await.unwrap();
    assert!(refused.contains("is over"), "{refused}");
    assert_eq!(rig.rows().await, 1);
    rig.run("DELETE FROM {}").await.unwrap();
    assert_eq!(late(&rig, layer.allow_late()).await, None);

    assert_eq!(rig.rows().await, 2);
    rig.until_whole().await;
}

#[tokio::test]
async fn a_request_can_keep_one_connection_for_its_whole_life() {
    for transactions in [false, true] {
        let rig = Rig::new(&format!("keeps_{transactions}")).await;
        let handler = |State(rig): State<Rig>| async move {
            for _ in 0..3 {
                rig.number("SELECT count(*) FROM {}").await?;
                assert_eq!(rig.db.pool().status().in_use, 1);
            }
            let count = "SELECT count(*) FROM {}";
            let (one, two) = tokio::join!(rig.number(count), rig.number(count));
            Ok::<_, Problem>((one? + two?).to_string())
        };
        let routes = Router::new()
            .route("/", get(handler))
            .with_state(rig.clone());
        let stack = Stack::new(&rig.db).scope(|layer| layer.keep_resources());
        let stack = match transactions {
            true => stack,
            false => stack.transactions(|layer| layer.on_demand()),
        };
        let server = serve(stack.wrap(routes)).await;
        let before = rig.db.pool().status().acquired;

        assert_eq!(server.get("/").await.body, "0");

        assert_eq!(rig.db.pool().status().acquired, before + 1);
        rig.until_whole().await;
    }
}

#[tokio::test]
async fn the_stack_sheds_before_it_waits_and_reports_what_it_sheds() {
    let rig = Rig::with("stack_sheds", |builder| builder.max_size(1)).await;
    let (tell, told) = std::sync::mpsc::channel();
    let stack = Stack::new(&rig.db)
        .transactions(|layer| layer.on_demand())
        .shed(Duration::from_millis(100))
        .problems(|layer| layer.on_problem(move |problem| tell.send(problem.clone()).unwrap()));
    let server = serve(stack.wrap(rig.routes())).await;
    let holder = server.send("/hold").await;
    rig.until_at_gate(1).await;
    let waiting = server.send("/rows").await;
    until("a request waits", || rig.db.pool().status().waiting == 1).await;

    // No connection comes back, so the estimate of the wait grows with time.
    let refused = loop {
        let answer = server.get("/plain").await;
        if answer.status == 503 {
            break answer;
        }
        assert_eq!(answer.status, 200);
    };

    assert!(refused.headers.contains_key("retry-after"));
    let problem = told.try_recv().unwrap();
    let report = problem.report();
    assert!(report.starts_with("GET /plain: refused: "), "{report}");
    rig.gate.add_permits(1);
    drop((holder, waiting));
    rig.until_whole().await;
}
