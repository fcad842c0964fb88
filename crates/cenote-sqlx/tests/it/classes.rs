//! The classes of errors, provoked on real servers.

use cenote::Manager;
use cenote::error::ErrorClass;
use cenote_sqlx::{Class, Db, Isolation, Retry, TransactionOptions};
use sqlx::{MySql, Postgres, Sqlite};

use crate::world;

#[test]
fn the_breaker_is_told_the_kind_of_a_failed_open() {
    let db = Db::postgres("postgres://app@localhost/shop")
        .build()
        .unwrap();
    let class = |error: sqlx::Error| db.pool().manager().classify(&error);
    let refused = std::io::ErrorKind::ConnectionRefused;

    let classes = [
        class(sqlx::Error::Io(refused.into())),
        class(sqlx::Error::WorkerCrashed),
        class(sqlx::Error::Configuration("no such host".into())),
        class(sqlx::Error::PoolTimedOut),
        class(sqlx::Error::RowNotFound),
    ];

    assert_eq!(
        classes,
        [
            ErrorClass::Unreachable,
            ErrorClass::Unreachable,
            ErrorClass::Denied,
            ErrorClass::Overloaded,
            ErrorClass::Other,
        ]
    );
}

#[tokio::test]
async fn a_wrong_statement_has_the_class_statement() {
    let (postgres, mysql) = (
        world::postgres::builder().0.build().unwrap(),
        world::mysql::builder().0.build().unwrap(),
    );
    let (builder, _home) = world::sqlite::builder();
    let sqlite = builder.build().unwrap();
    for wrong in [
        "SELEKT 1",
        "SELECT * FROM nowhere_at_all",
        "SELECT no_such_function(1)",
    ] {
        let error = sqlx::query(wrong).execute(&postgres).await.unwrap_err();
        assert_eq!(
            Db::<Postgres>::classify(&error),
            Class::Statement,
            "{error}"
        );
        let error = sqlx::query(wrong).execute(&mysql).await.unwrap_err();
        assert_eq!(Db::<MySql>::classify(&error), Class::Statement, "{error}");
        let error = sqlx::query(wrong).execute(&sqlite).await.unwrap_err();
        assert_eq!(Db::<Sqlite>::classify(&error), Class::Statement, "{error}");
    }
    let error = sqlx::query_scalar::<_, String>("SELECT 1")
        .fetch_one(&postgres)
        .await
        .unwrap_err();
    assert_eq!(
        Db::<Postgres>::classify(&error),
        Class::Statement,
        "{error}"
    );
    assert!(!Class::Statement.poisons() && !Class::Statement.is_retryable());
}

#[tokio::test]
async fn a_wrong_password_or_port_is_an_error_with_its_cause() {
    let unreachable = Db::postgres("postgres://postgres@127.0.0.1:1/test")
        .build()
        .unwrap();
    let error = sqlx::query("SELECT 1")
        .execute(&unreachable)
        .await
        .unwrap_err();
    assert_eq!(Db::<Postgres>::classify(&error), Class::Refused, "{error}");
    assert!(error.to_string().contains("opening failed: "), "{error}");
    let refused = error.to_string().matches("refused").count();
    assert_eq!(refused, 1, "the cause is shown, and shown once: {error}");

    let url = world::as_user(&world::mysql::url(), "nobody_there:secret-word");
    let stranger = Db::mysql(url).build().unwrap();
    let error = sqlx::query("SELECT 1")
        .execute(&stranger)
        .await
        .unwrap_err();
    assert_eq!(Db::<MySql>::classify(&error), Class::Denied, "{error}");
    let shown = format!("{error} {error:?}");
    assert!(shown.contains("Access denied"), "{shown}");
    assert!(!shown.contains("secret-word"), "{shown}");
}

#[tokio::test]
async fn an_unknown_user_or_database_is_denied_and_not_worth_a_retry() {
    let known = world::postgres::builder().0.max_size(1).build().unwrap();
    for sql in [
        "DROP ROLE IF EXISTS cenote_no_login",
        "CREATE ROLE cenote_no_login PASSWORD 'p'",
    ] {
        sqlx::query(sql).execute(&known).await.unwrap();
    }
    let url = world::postgres::url();
    for url in [
        world::as_user(&url, "cenote_nobody:secret-word"),
        world::as_user(&url, "cenote_no_login:p"),
        world::with_parameter(&url, "dbname=cenote_no_such"),
    ] {
        let denied = Db::postgres(url).build().unwrap();
        let error = denied.acquire().await.unwrap_err();
        assert_eq!(Db::<Postgres>::classify(&error), Class::Denied, "{error}");
        assert!(!Db::<Postgres>::classify(&error).is_retryable());
    }

    let url = world::mysql::url();
    let (server, _) = url.rsplit_once('/').unwrap();
    let denied = Db::mysql(format!("{server}/cenote_no_such"));
    let error = denied.build().unwrap().acquire().await.unwrap_err();
    assert_eq!(Db::<MySql>::classify(&error), Class::Denied, "{error}");

    let denied = Db::sqlite("sqlite://not/there.db").build().unwrap();
    let error = denied.acquire().await.unwrap_err();
    assert_eq!(Db::<Sqlite>::classify(&error), Class::Denied, "{error}");
}

#[tokio::test]
async fn a_serialization_failure_is_a_conflict_and_retrying_runs_it_again() {
    let db = world::postgres::builder().0.max_size(2).build().unwrap();
    for sql in [
        "DROP TABLE IF EXISTS cenote_serial",
        "CREATE TABLE cenote_serial (id int PRIMARY KEY, amount int)",
        "INSERT INTO cenote_serial VALUES (1, 0)",
    ] {
        sqlx::query(sql).execute(&db).await.unwrap();
    }
    let strict = TransactionOptions::new().isolation(Isolation::Serializable);
    let add = "UPDATE cenote_serial SET amount = amount + 1 WHERE id = 1";
    let mut first = db.begin_with(strict).await.unwrap();
    let mut second = db.begin_with(strict).await.unwrap();
    for transaction in [&mut first, &mut second] {
        sqlx::query("SELECT amount FROM cenote_serial")
            .execute(transaction)
            .await
            .unwrap();
    }
    sqlx::query(add).execute(&mut first).await.unwrap();
    first.commit().await.unwrap();

    let error = sqlx::query(add).execute(&mut second).await.unwrap_err();
    assert_eq!(Db::<Postgres>::classify(&error), Class::Conflict, "{error}");
    drop(second);

    let mut tries = 0;
    let work = db.retrying(Retry::default(), || {
        tries += 1;
        let fails = tries < 3;
        let db = &db;
        async move {
            sqlx::query(add).execute(db).await?;
            if fails {
                sqlx::query(
                    "DO $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '40001'; END $$",
                )
                .execute(db)
                .await?;
            }
            Ok::<_, sqlx::Error>(())
        }
    });
    work.await.unwrap();
    let amount: i32 = sqlx::query_scalar("SELECT amount FROM cenote_serial")
        .fetch_one(&db)
        .await
        .unwrap();
    assert_eq!((tries, amount), (3, 2));
}

#[tokio::test]
async fn retrying_ends_after_its_attempts_and_on_any_other_error() {
    let db = world::postgres::builder().0.max_size(1).build().unwrap();
    let retry = Retry {
        attempts: 3,
        ..Retry::default()
    };
    let mut tries = 0;

    let conflicts = db.retrying(retry, || {
        tries += 1;
        async {
            sqlx::query("DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40P01'; END $$")
                .execute(&db)
                .await
        }
    });
    assert!(conflicts.await.is_err());
    assert_eq!(tries, 3);

    tries = 0;
    let wrong = db.retrying(retry, || {
        tries += 1;
        async { sqlx::query("SELEKT 1").execute(&db).await }
    });
    assert!(wrong.await.is_err());
    assert_eq!(tries, 1);
}

#[tokio::test]
async fn a_busy_sqlite_is_a_conflict() {
    let (builder, home) = world::sqlite::builder();
    let db = builder.build().unwrap();
    sqlx::query("CREATE TABLE t (a INTEGER)")
        .execute(&db)
        .await
        .unwrap();
    let file = home.path().join("test.db");
    // Another handle is like another process: its writers have a queue of their own.
    let other = Db::sqlite(format!("sqlite://{}", file.display()))
        .setting("PRAGMA busy_timeout = 0")
        .build()
        .unwrap();
    let _writing = db.begin().await.unwrap();

    let error = sqlx::query("INSERT INTO t VALUES (1)")
        .execute(&other)
        .await
        .unwrap_err();

    assert_eq!(Db::<Sqlite>::classify(&error), Class::Conflict, "{error}");
}

#[tokio::test]
async fn too_many_connections_are_a_refusal() {
    let db = world::postgres::builder().0.max_size(1).build().unwrap();
    for sql in [
        "DROP ROLE IF EXISTS cenote_limited",
        "CREATE ROLE cenote_limited LOGIN PASSWORD 'limited' CONNECTION LIMIT 1",
    ] {
        sqlx::query(sql).execute(&db).await.unwrap();
    }
    let url = world::as_user(&world::postgres::url(), "cenote_limited:limited");
    let limited = Db::postgres(url).max_size(2).build().unwrap();
    let _only = limited.acquire().await.unwrap();

    let error = limited.acquire().await.unwrap_err();

    assert_eq!(Db::<Postgres>::classify(&error), Class::Refused, "{error}");
    assert!(
        error.to_string().contains("too many connections"),
        "{error}"
    );
}

#[tokio::test]
async fn too_many_connections_of_a_user_are_a_refusal() {
    let db = world::mysql::builder().0.max_size(1).build().unwrap();
    for sql in [
        "DROP USER IF EXISTS cenote_limited",
        "CREATE USER cenote_limited IDENTIFIED BY 'limited' WITH MAX_USER_CONNECTIONS 1",
        "GRANT ALL ON *.* TO cenote_limited",
    ] {
        sqlx::raw_sql(sql).execute(&db).await.unwrap();
    }
    let url = world::as_user(&world::mysql::url(), "cenote_limited:limited");
    let limited = Db::mysql(url).max_size(2).build().unwrap();
    let _only = limited.acquire().await.unwrap();

    let error = limited.acquire().await.unwrap_err();

    assert_eq!(Db::<MySql>::classify(&error), Class::Refused, "{error}");
    assert!(
        error.to_string().contains("max_user_connections"),
        "{error}"
    );
}
