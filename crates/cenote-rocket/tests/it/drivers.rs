//! The pools of the driver crates.

use cenote_mysql::mysql_async::prelude::Queryable;
use rocket::{get, routes};
use rocket_db_pools::{Connection, Database};

use crate::rig::server;
use crate::server::config;

#[derive(Database)]
#[database("direct")]
struct Direct(cenote_rocket::Pool<cenote_postgres::Pool>);

#[get("/")]
async fn one(db: Connection<Direct>) -> String {
    let row = db.query_one("select 1::int8", &[]).await.unwrap();
    row.get::<_, i64>(0).to_string()
}

#[tokio::test]
async fn a_pool_of_cenote_postgres_serves_requests_with_its_own_settings() {
    let config = config()
        .merge(("databases.direct.url", server()))
        .merge(("databases.direct.max_connections", 2))
        .merge(("databases.direct.reset", "always"))
        .merge(("databases.direct.statement_cache_capacity", 10));
    let rocket = rocket::custom(config)
        .attach(Direct::init())
        .mount("/", routes![one]);

    let client = rocket::local::asynchronous::Client::tracked(rocket)
        .await
        .unwrap();

    for _ in 0..5 {
        let answer = client.get("/").dispatch().await;
        assert_eq!(answer.into_string().await.as_deref(), Some("1"));
    }
    let pool = Direct::fetch(client.rocket()).unwrap();
    assert_eq!((pool.status().max_size, pool.status().in_use), (2, 0));
}

#[derive(Database)]
#[database("mysql")]
struct MySql(cenote_rocket::Pool<cenote_mysql::Pool>);

#[get("/")]
async fn two(mut db: Connection<MySql>) -> String {
    let two: Option<i64> = db.query_first("SELECT 2").await.unwrap();
    two.unwrap().to_string()
}

#[tokio::test]
async fn a_pool_of_cenote_mysql_serves_requests() {
    let found = cenote_servers::mariadb::find().unwrap();
    let config = config().merge(("databases.mysql.url", found.url()));
    let rocket = rocket::custom(config)
        .attach(MySql::init())
        .mount("/", routes![two]);

    let client = rocket::local::asynchronous::Client::tracked(rocket)
        .await
        .unwrap();

    let answer = client.get("/").dispatch().await;
    assert_eq!(answer.into_string().await.as_deref(), Some("2"));
    assert_eq!(MySql::fetch(client.rocket()).unwrap().status().in_use, 0);
}
