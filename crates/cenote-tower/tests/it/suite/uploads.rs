//! Requests that have not used the database yet hold no connection.

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use cenote_tower::{Problem, Stack, TransactionalLayer, Tx};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Rig;
use super::world::DB;
use crate::client::{Server, serve, until};

async fn by_layer(State(rig): State<Rig>, body: String) -> Result<String, Problem> {
    rig.insert(body.trim().parse().unwrap()).await?;
    Ok(body)
}

async fn by_extractor(tx: Tx<DB>, State(rig): State<Rig>, body: String) -> Result<String, Problem> {
    assert!(tx.in_transaction());
    by_layer(State(rig), body).await
}

fn routes(rig: &Rig) -> Router {
    let uploads = Router::new()
        .route("/layer", post(by_layer))
        .route("/extractor", post(by_extractor))
        .with_state(rig.clone());
    uploads.merge(rig.routes())
}

/// Sends the head of a request and the first half of its body.
async fn begin_upload(server: &Server, path: &str) -> TcpStream {
    let mut stream = server.connect().await;
    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\n  ");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn slow_uploads_hold_no_connection() {
    let rig = Rig::with("uploads", |builder| builder.max_size(2)).await;
    let layer = TransactionalLayer::new(rig.db.clone());
    let apps = [
        ("/layer", routes(&rig).layer(layer.clone())),
        ("/extractor", routes(&rig).layer(layer.clone())),
        ("/extractor", routes(&rig).layer(layer.on_demand())),
        ("/layer", Stack::new(&rig.db).wrap(routes(&rig))),
    ];

    for (nth, (path, app)) in (1..).zip(apps) {
        let server = serve(app).await;
        let acquired = rig.db.pool().status().acquired;
        let mut uploads = Vec::new();
        for _ in 0..4 {
            uploads.push(begin_upload(&server, path).await);
        }
        assert_eq!(server.get("/plain").await.body, "hello");
        assert_eq!(server.get("/rows").await.body, (4 * (nth - 1)).to_string());
        assert_eq!(rig.db.pool().status().acquired, acquired + 1, "for `/rows`");

        for (id, upload) in (0..).zip(&mut uploads) {
            upload
                .write_all(format!("{nth}{id}").as_bytes())
                .await
                .unwrap();
            let mut answer = [0; 12];
            upload.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"HTTP/1.1 200");
        }
        assert_eq!(rig.rows().await, 4 * nth);
    }
    rig.until_whole().await;
}

#[tokio::test]
async fn a_held_connection_is_labelled_with_the_route_and_the_statement() {
    let rig = Rig::new("labels").await;
    let layer = TransactionalLayer::new(rig.db.clone());
    let apps = [
        rig.routes().layer(layer),
        Stack::new(&rig.db).wrap(rig.routes()),
    ];

    for (id, app) in (1..).zip(apps) {
        let server = serve(app).await;
        let client = server.send(&format!("/insert_and_wait/{id}")).await;
        rig.until_at_gate(id).await;
        let leases = rig.db.pool().leases();
        let holder = leases[0].to_string();

        let label = leases[0].label.as_deref().unwrap();
        assert!(
            label.starts_with("GET /insert_and_wait/{id}: INSERT INTO "),
            "{label}"
        );
        assert!(!holder.contains(".rs"), "{holder}");
        drop(client);
        rig.until_home().await;
    }
}

#[tokio::test]
async fn a_report_names_routes_and_no_line_of_these_crates() {
    let rig = Rig::with("report_lines", |builder| {
        let limit = std::time::Duration::from_secs(1);
        builder.max_size(1).acquire_timeout(limit)
    })
    .await;
    let (tell, told) = std::sync::mpsc::channel();
    let app = Stack::new(&rig.db)
        .problems(|layer| layer.on_problem(move |problem| tell.send(problem.clone()).unwrap()));
    let server = serve(app.wrap(rig.routes())).await;
    let client = server.send("/insert_and_wait/1").await;
    rig.until_at_gate(1).await;

    assert_eq!(server.get("/insert/2/200").await.status, 503);

    let problem = told.try_recv().unwrap();
    assert_eq!(problem.method(), Some(&http::Method::GET));
    assert_eq!(problem.route(), Some("/insert/{id}/{status}"));
    let report = problem.report();
    assert!(
        report.starts_with("GET /insert/{id}/{status}: "),
        "{report}"
    );
    assert!(report.contains("(GET /insert_and_wait/{id}: "), "{report}");
    assert!(!report.contains("src/"), "{report}");
    drop(client);
    until("the pool is whole", || rig.db.pool().status().in_use == 0).await;
}
