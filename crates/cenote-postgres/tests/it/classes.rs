//! Errors of a real server, and what they mean.

use cenote::Manager;
use cenote::error::ErrorClass;
use cenote_postgres::{Class, Error, Pool};

use crate::{Admin, builder_at};

async fn refusal(pool: &Pool) -> Error {
    pool.acquire().await.unwrap_err()
}

/// Returns the class that a breaker hears of.
fn class_of_open(pool: &Pool, error: &Error) -> ErrorClass {
    let Error::Pool(inner) = error else {
        panic!("{error:?}")
    };
    let mut next: Option<&dyn std::error::Error> = std::error::Error::source(&**inner);
    while let Some(cause) = next {
        if let Some(cause) = cause.downcast_ref::<Error>() {
            return pool.manager().classify(cause);
        }
        next = cause.source();
    }
    panic!("no error of an open: {error:?}");
}

#[tokio::test]
async fn a_client_that_the_server_does_not_know_is_denied() {
    let server = cenote_servers::postgres::start().unwrap();
    let admin = Admin::at(server.url()).await;
    let rules = "host all postgres all trust\nhost all all all scram-sha-256\n";
    std::fs::write(server.folder().join("data/pg_hba.conf"), rules).unwrap();
    let create = "create role guest login password 'right'; select pg_reload_conf()";
    admin.0.batch_execute(create).await.unwrap();
    let at = |user: &str, database: &str| {
        let url = server.url().replace("postgres@", &format!("{user}@"));
        let url = url.replace("/postgres", &format!("/{database}"));
        builder_at(&url, 1).build().unwrap()
    };
    crate::eventually("the rules are read", async || {
        at("guest:wrong", "postgres").acquire().await.is_err()
    })
    .await;

    for (user, database) in [
        ("guest:wrong", "postgres"),
        ("guest", "postgres"),
        ("nobody:any", "postgres"),
        ("postgres", "no_such_database"),
    ] {
        let pool = at(user, database);
        let error = refusal(&pool).await;
        assert_eq!(error.class(), Class::Denied, "{user} {database}: {error}");
        assert!(!error.is_retryable());
        assert_eq!(class_of_open(&pool, &error), ErrorClass::Denied, "{error}");
    }
    at("guest:right", "postgres")
        .query("select 1", &[])
        .await
        .unwrap();
}

#[tokio::test]
async fn a_server_that_is_away_or_full_is_worth_another_try() {
    let away = Pool::from_url("postgres://postgres@127.0.0.1:1/postgres")
        .build()
        .unwrap();
    let error = refusal(&away).await;
    assert_eq!(
        (error.class(), error.is_retryable()),
        (Class::Refused, true),
        "{error}"
    );
    assert_eq!(class_of_open(&away, &error), ErrorClass::Unreachable);

    let settings = [
        ("max_connections", "2"),
        ("superuser_reserved_connections", "0"),
    ];
    let settings = [settings[0], settings[1], ("max_wal_senders", "0")];
    let server = cenote_servers::postgres::start_with(&settings).unwrap();
    let pool = builder_at(server.url(), 3).build().unwrap();
    let _held = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
    let error = refusal(&pool).await;
    assert_eq!(
        (error.class(), error.is_retryable()),
        (Class::Refused, true),
        "{error}"
    );
    assert_eq!(class_of_open(&pool, &error), ErrorClass::Overloaded);
}

#[tokio::test]
async fn errors_of_statements_are_told_apart() {
    let server = cenote_servers::postgres::start().unwrap();
    let pool = builder_at(server.url(), 2).build().unwrap();
    let class = async |sql: &str| pool.query(sql, &[]).await.unwrap_err().class();

    assert_eq!(class("selekt 1").await, Class::Statement);
    assert_eq!(class("select 1 / 0").await, Class::Statement);
    let rows = pool.query_one("select 1 where false", &[]).await;
    assert_eq!(rows.unwrap_err().class(), Class::Statement);
    let value = pool.query("select $1::int", &[&"a"]).await;
    assert_eq!(value.unwrap_err().class(), Class::Statement);
    let count = pool.query("select $1::int", &[]).await;
    assert_eq!(count.unwrap_err().class(), Class::Statement);
    let row = pool.query_one("select 1::text", &[]).await.unwrap();
    let column = Error::from(row.try_get::<_, i32>(0).unwrap_err());
    assert_eq!(column.class(), Class::Statement);
    let column = Error::from(row.try_get::<_, i32>("b").unwrap_err());
    assert_eq!(column.class(), Class::Statement);
    pool.batch_execute("create table t (a int)").await.unwrap();
    let mut first = pool.acquire().await.unwrap();
    let first = first.transaction().await.unwrap();
    first.execute("lock table t", &[]).await.unwrap();
    assert_eq!(
        class("lock table t nowait").await,
        Class::Statement,
        "no transaction"
    );
    let locked = pool.transaction(async || pool.query("lock table t nowait", &[]).await);
    assert_eq!(locked.await.unwrap_err().class(), Class::Conflict);
    let killed = class("select pg_terminate_backend(pg_backend_pid())").await;
    assert_eq!(killed, Class::Broken);
}
