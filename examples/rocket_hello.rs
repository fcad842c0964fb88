//! Run: cargo run -p cenote-examples --example rocket_hello
//!
//! How do I use a database in Rocket, with its configuration and a transaction per request?

mod http_client;

use std::error::Error;
use std::net::SocketAddr;

use cenote_sqlx::Db;
use rocket::fairing::AdHoc;
use rocket::http::Status;
use rocket::{State, get, post, routes};
use rocket_db_pools::{Connection, Database};
use sqlx::Sqlite;
use tokio::sync::oneshot;

#[derive(Database)]
#[database("orders")]
struct Orders(cenote_rocket::Pool<Db<Sqlite>>);

fn failed(error: sqlx::Error) -> Status {
    eprintln!("{error}");
    Status::InternalServerError
}

/// The guard is a connection.
#[get("/count")]
async fn count(mut db: Connection<Orders>) -> Result<String, Status> {
    let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM orders");
    let count = count.fetch_one(&mut *db).await.map_err(failed)?;
    Ok(count.to_string())
}

/// The state is the pool. There are two chairs.
#[post("/order/<item>")]
async fn order(orders: &State<Orders>, item: &str) -> Result<&'static str, Status> {
    let db: &Db<Sqlite> = orders;
    let insert = sqlx::query("INSERT INTO orders VALUES (?)").bind(item);
    insert.execute(db).await.map_err(failed)?;
    let count = sqlx::query_scalar("SELECT count(*) FROM orders WHERE item = ?");
    let count: i64 = count.bind(item).fetch_one(db).await.map_err(failed)?;
    match count > 2 {
        true => Err(Status::Conflict), // rolls the insert back
        false => Ok("ordered"),
    }
}

#[rocket::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}/shop.db?mode=rwc", folder.path().display());
    // A program has these settings in `Rocket.toml`.
    let config = rocket::Config::figment()
        .merge(("port", 0))
        .merge(("log_level", "critical"))
        .merge(("databases.orders.url", url))
        .merge(("databases.orders.max_connections", 4))
        .merge(("databases.orders.pool.max_lifetime", "10min"));
    let (tell, told) = oneshot::channel();
    let rocket = rocket::custom(config)
        .attach(Orders::init())
        .mount("/", routes![count])
        .mount(
            "/",
            cenote_rocket::transactional::<Orders, _>(routes![order]),
        )
        .attach(AdHoc::on_liftoff("tell the port", |rocket| {
            let address = SocketAddr::new(rocket.config().address, rocket.config().port);
            Box::pin(async move { tell.send(address).unwrap_or_default() })
        }));
    let rocket = rocket.ignite().await?;
    let db: &Db<Sqlite> = Orders::fetch(&rocket).ok_or("it is attached")?;
    let db = db.clone();
    sqlx::query("CREATE TABLE orders (item TEXT NOT NULL)")
        .execute(&db)
        .await?;
    let shutdown = rocket.shutdown();
    let running = rocket::tokio::spawn(rocket.launch());
    let address = told.await?;

    for expected in [200, 200, 409] {
        let (status, _) = http_client::send(address, "POST", "/order/chair").await?;
        println!("POST /order/chair: {status}");
        assert_eq!(status, expected);
    }
    let (_, count) = http_client::send(address, "GET", "/count").await?;
    println!("GET /count: {count}");
    assert_eq!(count, "2", "the third order was rolled back");

    shutdown.notify(); // which also closes the pool
    running.await??;
    println!("{} connections are left", db.pool().status().total);
    assert_eq!(db.pool().status().total, 0);
    Ok(())
}
