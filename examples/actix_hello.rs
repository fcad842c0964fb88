//! Run: cargo run -p cenote-examples --example actix_hello
//!
//! How do I use a database in actix-web, with a transaction per request?

mod http_client;

use std::error::Error;

use actix_web::http::StatusCode;
use actix_web::web::{self, Data};
use actix_web::{App, HttpServer, rt};
use cenote_actix::{Problem, RequestScope, Transactional};
use cenote_sqlx::Db;
use sqlx::Sqlite;

async fn count(db: Data<Db<Sqlite>>) -> Result<String, Problem> {
    let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM orders");
    Ok(count.fetch_one(db.get_ref()).await?.to_string())
}

/// Orders a thing. There are two chairs.
async fn order(db: Data<Db<Sqlite>>, item: web::Path<String>) -> Result<&'static str, Problem> {
    let insert = sqlx::query("INSERT INTO orders VALUES (?)");
    insert.bind(&*item).execute(db.get_ref()).await?;
    let count = sqlx::query_scalar("SELECT count(*) FROM orders WHERE item = ?");
    let count: i64 = count.bind(&*item).fetch_one(db.get_ref()).await?;
    match count > 2 {
        true => Err(Problem::new(StatusCode::CONFLICT, "none left")), // rolls the insert back
        false => Ok("ordered"),
    }
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}/shop.db?mode=rwc", folder.path().display());
    let db = Db::sqlite(url).max_size(4).build()?; // one pool for all workers
    sqlx::query("CREATE TABLE orders (item TEXT NOT NULL)")
        .execute(&db)
        .await?;

    let for_workers = db.clone();
    let server = HttpServer::new(move || {
        App::new()
            .app_data(Data::new(for_workers.clone()))
            .route("/count", web::get().to(count))
            .route("/order/{item}", web::post().to(order))
            .wrap(Transactional::new(for_workers.clone()))
            .wrap(RequestScope::new())
    })
    .workers(2)
    .bind(("127.0.0.1", 0))?;
    let address = server.addrs()[0];
    let server = server.run();
    let handle = server.handle();
    let running = rt::spawn(server);

    for expected in [200, 200, 409] {
        let (status, body) = http_client::send(address, "POST", "/order/chair").await?;
        println!("POST /order/chair: {status} {body}");
        assert_eq!(status, expected);
    }
    let (_, count) = http_client::send(address, "GET", "/count").await?;
    println!("GET /count: {count}");
    assert_eq!(count, "2", "the third order was rolled back");

    handle.stop(true).await;
    running.await??;
    db.close().await;
    println!("{} connections are left", db.pool().status().total);
    assert_eq!(db.pool().status().total, 0);
    Ok(())
}
