//! Run: cargo run -p cenote-examples --example http_drain
//!
//! How do I stop a service under load and lose nothing?
//!
//! In this order: report not ready while still serving, so that the load balancer sends no more;
//! accept no new connections, finish the requests, close the pool, end the program.

mod http_client;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::routing::post;
use cenote_sqlx::Db;
use cenote_tower::{Problem, Readiness, Stack, health_routes};
use sqlx::Sqlite;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

type AnyError = Box<dyn Error + Send + Sync>;

async fn note(State(db): State<Db<Sqlite>>) -> Result<&'static str, Problem> {
    sqlx::query("INSERT INTO notes VALUES ('here')")
        .execute(&db)
        .await?;
    tokio::time::sleep(Duration::from_millis(2)).await; // stands for slow work
    Ok("noted")
}

/// Writes notes until the server accepts no more connections, and counts the confirmed ones.
async fn write_notes(server: std::net::SocketAddr, noted: Arc<AtomicUsize>) {
    while let Ok((status, body)) = http_client::send(server, "POST", "/notes").await {
        assert_eq!((status, body.as_str()), (200, "noted"));
        noted.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}/notes.db?mode=rwc", folder.path().display());
    let db = Db::sqlite(url.clone()).max_size(4).build()?;
    sqlx::query("CREATE TABLE notes (text TEXT NOT NULL)")
        .execute(&db)
        .await?;
    let routes = Router::new()
        .route("/notes", post(note))
        .with_state(db.clone());
    let app = Stack::new(&db).wrap(routes);
    // The outermost layer counts every request that came in.
    let came = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&came);
    let app = app.layer(axum::middleware::map_request(move |request: Request| {
        count.fetch_add(1, Ordering::SeqCst);
        async { request }
    }));
    let readiness = Readiness::new().pool(db.pool());
    let app = app.merge(health_routes(readiness.clone()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = listener.local_addr()?;
    let noted = Arc::new(AtomicUsize::new(0));
    let late = Arc::clone(&noted);
    let clients: Vec<_> = (0..20)
        .map(|_| tokio::spawn(write_notes(server, noted.clone())))
        .collect();

    let (stop, stopped) = oneshot::channel::<()>();
    let seen = Arc::clone(&noted);
    tokio::spawn(async move {
        while seen.load(Ordering::SeqCst) < 100 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(stop); // a program gets SIGTERM here
    });
    let drained = async move {
        drop(stopped.await);
        readiness.drain(); // 1. the load balancer, which asks every few seconds
        let asked = http_client::send(server, "GET", "/readyz").await;
        let asked = asked.expect("the server still accepts connections");
        println!("the load balancer is told {}: {}", asked.0, asked.1);
        assert_eq!(asked.0, 503);
        let served = http_client::send(server, "POST", "/notes").await;
        assert_eq!(served.expect("it still serves").0, 200);
        late.fetch_add(1, Ordering::SeqCst);
    };
    axum::serve(listener, app)
        .with_graceful_shutdown(drained)
        .await?; // 2. the requests
    let leftover = db.pool().close_within(Duration::from_secs(10)).await; // 3. the pool

    println!("leases left: {}", leftover.leases.len());
    assert!(leftover.is_empty());
    for client in clients {
        client.await?;
    }
    let again = Db::sqlite(url).build()?;
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM notes")
        .fetch_one(&again)
        .await?;
    let (came, noted) = (came.load(Ordering::SeqCst), noted.load(Ordering::SeqCst));
    println!("{came} requests came in, {noted} notes were confirmed, {rows} are there");
    assert_eq!(came, noted, "every request that came in was served");
    assert_eq!(usize::try_from(rows)?, noted);
    Ok(())
}
