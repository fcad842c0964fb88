//! Pools of `cenote-sqlx` in a fleet. On PostgreSQL their sessions have the tag in their name, and
//! on MariaDB each session writes it first.

use cenote_fleet::Fleet;
use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_sqlx::{Db, Sql};
use sqlx::mysql::MySqlConnectOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, MySql, Postgres};

use crate::live::{CAPACITY, LIMIT, Seat, TTL, until};
use crate::mysql::Database;

/// One session cancels statements, and one asks whether a statement without an answer still runs.
const OVERHEAD: u32 = 2;

/// Besides its pool, a member has its control connection and the overhead, and one place is kept
/// for a process that joins.
const ALL_OF_ONE: u32 = CAPACITY - 1 - OVERHEAD - 1;

/// What is left without the sessions beside the pool and the floor of another member.
const ALL_OF_TWO: u32 = ALL_OF_ONE - 1 - OVERHEAD - 1;

async fn on_postgres(url: &str) -> Seat<Sql<Postgres>> {
    let joining = Fleet::postgres(&url.parse().unwrap(), "orders").unwrap();
    let options: PgConnectOptions = url.parse().unwrap();
    let db = Db::<Postgres>::with_options(options.application_name(&joining.tag("api")));
    let db = db.acquire_timeout(LIMIT).open_timeout(LIMIT);
    let db = db.build().unwrap();
    let joined = Seat::take(joining.overhead(OVERHEAD), db.pool(), TTL).await;
    joined.unwrap()
}

async fn on_mariadb(database: &Database) -> Seat<Sql<MySql>> {
    let joining = Fleet::mysql(&database.options, "orders").unwrap();
    let options = MySqlConnectOptions::new()
        .host(database.options.ip_or_hostname())
        .port(database.options.tcp_port())
        .username("app")
        .database("shop");
    let tag = joining.tag();
    let db = Db::<MySql>::with_options(options).after_connect(move |connection| {
        let tag = sqlx::raw_sql(AssertSqlSafe(tag.clone()));
        Box::pin(async { tag.execute(connection).await.map(drop) })
    });
    let db = db.acquire_timeout(LIMIT).open_timeout(LIMIT);
    let db = db.build().unwrap();
    let joined = Seat::take(joining.overhead(OVERHEAD), db.pool(), TTL).await;
    joined.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pools_of_sqlx_share_a_budget_on_postgres_and_wait_for_a_full_server() {
    let server = cenote_servers::postgres::start().unwrap();
    let admin = Db::postgres(server.url()).max_size(1).build().unwrap();
    let run = async |sql: &'static str| sqlx::raw_sql(sql).execute(&admin).await.unwrap();
    run("create role app login connection limit 12; grant create on schema public to app").await;
    let url = server.url().replace("postgres@", "app@");
    let (first, second) = (on_postgres(&url).await, on_postgres(&url).await);

    let leases = first.hold(ALL_OF_TWO).await;
    let wanted = second.want(ALL_OF_TWO);
    until(|| "one is lent".to_owned(), || second.in_use() == 1).await;
    drop(leases);
    drop(wanted.await.unwrap());

    let refused = [&first, &second].map(|seat| seat.pool.status().open_failed);
    assert_eq!(refused, [0, 0], "the limit of the server was never met");
    second.fleet.leave().await;
    first.pool.retain(|_| false);
    run("alter role app connection limit 2").await;
    let leases = first.hold(1).await; // and the control connection
    let wanted = first.want(ALL_OF_ONE - 1);
    let is_refused = || first.pool.status().open_failed > 1;
    until(|| "opens are refused".to_owned(), is_refused).await;
    assert!(!wanted.is_finished());
    run("alter role app connection limit -1").await;
    assert_eq!(wanted.await.unwrap().len() as u32, ALL_OF_ONE - 1);
    drop(leases);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_sqlx_write_their_tag_on_mariadb_and_wait_for_a_full_server() {
    let server = cenote_servers::mariadb::start().unwrap();
    let database = Database::at(server.url()).await;
    let limit = "ALTER USER app@'%' WITH MAX_USER_CONNECTIONS";
    database.run(&format!("{limit} 4")).await;
    let seat = on_mariadb(&database).await;

    let leases = seat.hold(3).await; // and the control connection
    let wanted = seat.want(3);
    let is_refused = || seat.pool.status().open_failed > 1;
    until(|| "opens are refused".to_owned(), is_refused).await;
    assert_eq!((seat.in_use(), wanted.is_finished()), (3, false));
    drop(leases);
    drop(wanted.await.unwrap());
    database.run(&format!("{limit} 0")).await;
    let leases = seat.hold(ALL_OF_ONE).await;

    let tagged = "SELECT COUNT(*) FROM information_schema.processlist AS p \
         JOIN shop.cenote_fleet_session AS s ON s.id = p.id WHERE s.name = 'orders'";
    let tagged: Option<u32> = database.admin().await.query_first(tagged).await.unwrap();
    assert_eq!(
        tagged,
        Some(1 + ALL_OF_ONE),
        "the control connection, and all of the pool"
    );
    drop(leases);
}
