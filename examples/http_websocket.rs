//! Run: cargo run -p cenote-examples --example http_websocket
//!
//! How do thousands of WebSockets share a few connections?
//!
//! Each message has a scope, and so a lease, of its own. A silent socket holds nothing.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::get;
use cenote_sqlx::Db;
use futures_util::{SinkExt, StreamExt};
use sqlx::Sqlite;
use tokio::net::TcpListener;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message as Sent;

type AnyError = Box<dyn Error + Send + Sync>;

const SOCKETS: usize = 200;

async fn upgrade(State(db): State<Db<Sqlite>>, request: WebSocketUpgrade) -> Response {
    // The socket outlives this request and its scope.
    request.on_upgrade(|socket| talk(socket, db))
}

async fn talk(mut socket: WebSocket, db: Db<Sqlite>) {
    while let Some(Ok(message)) = socket.recv().await {
        let Message::Text(text) = message else {
            continue;
        };
        let answer = cenote::scope(answer(&db, &text)).await; // its lease ends here
        let answer = answer.unwrap_or_else(|error| {
            // The error names files and statements of this program: it is for the log only.
            eprintln!("no answer: {error}");
            "sorry, try again later".to_owned()
        });
        if socket.send(Message::text(answer)).await.is_err() {
            return;
        }
    }
}

async fn answer(db: &Db<Sqlite>, text: &str) -> Result<String, sqlx::Error> {
    db.transaction(async || {
        sqlx::query("INSERT INTO said VALUES (?)")
            .bind(text)
            .execute(db)
            .await?;
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM said")
            .fetch_one(db)
            .await?;
        Ok(format!("{text} is number {count}"))
    })
    .await
}

/// Opens many sockets, and sends messages on each of them while all are open.
async fn visit(server: SocketAddr, db: &Db<Sqlite>) -> Result<(), AnyError> {
    let mut sockets = Vec::new();
    for _ in 0..SOCKETS {
        sockets.push(connect_async(format!("ws://{server}/talk")).await?.0);
    }
    for round in 0..2 {
        for (nth, socket) in sockets.iter_mut().enumerate() {
            socket.send(Sent::text(format!("word {nth}"))).await?;
        }
        for (nth, socket) in sockets.iter_mut().enumerate() {
            let answer = socket
                .next()
                .await
                .ok_or("the server closed the socket")??;
            assert!(
                answer
                    .to_text()?
                    .starts_with(&format!("word {nth} is number"))
            );
        }
        let status = db.pool().status();
        println!(
            "round {round}: {SOCKETS} sockets are open, {} connections in use, {} open",
            status.in_use, status.total
        );
        assert_eq!(status.in_use, 0, "silent sockets hold nothing");
        assert!(status.total <= 2);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}/said.db?mode=rwc", folder.path().display());
    let patience = Duration::from_secs(30); // all sockets send at the same time
    let db = Db::sqlite(url)
        .max_size(2)
        .acquire_timeout(patience)
        .build()?;
    sqlx::query("CREATE TABLE said (text TEXT NOT NULL)")
        .execute(&db)
        .await?;
    let app = Router::new()
        .route("/talk", get(upgrade))
        .with_state(db.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = listener.local_addr()?;
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    visit(server, &db).await?;
    serving.abort();
    let said: i64 = sqlx::query_scalar("SELECT count(*) FROM said")
        .fetch_one(&db)
        .await?;
    assert_eq!(usize::try_from(said)?, 2 * SOCKETS);
    Ok(())
}
