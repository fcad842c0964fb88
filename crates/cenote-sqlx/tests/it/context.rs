//! Session context: it holds for the statements of one future, on every connection.

use cenote_sqlx::{Db, Dialect};
use futures_util::StreamExt;
use sqlx::{MySql, Postgres};

use crate::world;

const TENANT: &str = "SELECT coalesce(current_setting('app.tenant', true), '')";

async fn tenant(db: &Db<Postgres>) -> String {
    sqlx::query_scalar(TENANT).fetch_one(db).await.unwrap()
}

fn one_connection() -> Db<Postgres> {
    let builder = Db::postgres(world::postgres::url()).max_size(1);
    builder.build().unwrap()
}

#[tokio::test]
async fn a_context_holds_for_every_statement_of_its_future_and_for_no_other() {
    let db = one_connection();

    let context = db.with_context([("app.tenant", 42)]);
    let work = context.run(async {
        assert_eq!(tenant(&db).await, "42");
        let inside = db.transaction(async || Ok::<_, sqlx::Error>(tenant(&db).await));
        assert_eq!(inside.await.unwrap(), "42");
        let mut by_hand = db.begin().await.unwrap();
        let seen: String = sqlx::query_scalar(TENANT)
            .fetch_one(&mut *by_hand)
            .await
            .unwrap();
        assert_eq!(seen, "42");
        drop(by_hand);
        let mut lease = db.acquire().await.unwrap();
        let seen: String = sqlx::query_scalar(TENANT)
            .fetch_one(&mut *lease)
            .await
            .unwrap();
        assert_eq!(seen, "42");
        drop(lease);
        let mut rows = sqlx::query_scalar::<_, String>(TENANT).fetch(&db);
        assert_eq!(rows.next().await.unwrap().unwrap(), "42");
    });
    work.await;

    assert_eq!(tenant(&db).await, "");
    let mut lease = db.acquire().await.unwrap();
    let seen = sqlx::query_scalar::<_, String>(TENANT).fetch_one(&mut *lease);
    assert_eq!(seen.await.unwrap(), "");
}

#[tokio::test]
async fn a_context_whose_future_panics_reaches_no_other_caller() {
    let db = one_connection();
    let inside = db.clone();

    let panics = tokio::spawn(db.with_context([("app.tenant", 42)]).run(async move {
        let mut transaction = inside.begin().await.unwrap();
        let seen = sqlx::query_scalar::<_, String>(TENANT).fetch_one(&mut transaction);
        assert_eq!(seen.await.unwrap(), "42");
        panic!("in the middle of a transaction");
    }));

    assert!(panics.await.unwrap_err().is_panic());
    assert_eq!(tenant(&db).await, "");
}

#[tokio::test]
async fn a_context_inside_another_adds_to_it_and_ends_before_it() {
    let db = one_connection();
    let zone = async || -> String {
        let zone = sqlx::query_scalar("SELECT current_setting('TimeZone')");
        zone.fetch_one(&db).await.unwrap()
    };
    let usual = zone().await;

    let outer = db.with_context([("app.tenant", "it's \\ 1")]);
    let work = outer.run(async {
        let inner = db.with_context([("TimeZone", "Asia/Tokyo")]);
        let seen = inner.run(async { (tenant(&db).await, zone().await) }).await;
        assert_eq!(seen, ("it's \\ 1".into(), "Asia/Tokyo".into()));
        assert_eq!(tenant(&db).await, "it's \\ 1");
        assert_eq!(zone().await, usual);
    });
    work.await;

    assert_eq!(tenant(&db).await, "");
}

#[tokio::test]
async fn a_context_that_a_rollback_undoes_is_applied_again() {
    let db = one_connection();
    let outer = db.with_context([("app.tenant", "outer")]);

    let work = outer.run(async {
        let failed: Result<(), _> = db
            .transaction(async || {
                let inner = db.with_context([("app.tenant", "inner")]);
                assert_eq!(inner.run(tenant(&db)).await, "inner");
                assert_eq!(tenant(&db).await, "outer");
                let inner = db.with_context([("app.tenant", "inner")]);
                assert_eq!(inner.run(tenant(&db)).await, "inner");
                Err(sqlx::Error::RowNotFound)
            })
            .await;
        assert!(failed.is_err());
        assert_eq!(tenant(&db).await, "outer");
        let nested = db.transaction(async || {
            let part: Result<(), _> = db
                .transaction(async || {
                    let inner = db.with_context([("app.tenant", "inner")]);
                    assert_eq!(inner.run(tenant(&db)).await, "inner");
                    sqlx::query("SELECT 1 / 0").execute(&db).await.map(drop)
                })
                .await;
            assert!(part.is_err());
            assert_eq!(tenant(&db).await, "outer");
            Ok::<_, sqlx::Error>(())
        });
        nested.await.unwrap();
        assert_eq!(tenant(&db).await, "outer");
    });
    work.await;

    assert_eq!(tenant(&db).await, "");
}

#[tokio::test]
async fn after_a_rollback_the_context_before_it_is_not_taken_for_the_one_inside() {
    let db = one_connection();
    let red = db.with_context([("app.tenant", "red")]);
    let blue = db.with_context([("app.tenant", "blue")]);

    let work = async || -> Result<(), sqlx::Error> {
        assert_eq!(blue.clone().run(tenant(&db)).await, "blue");
        Err(sqlx::Error::RowNotFound)
    };
    assert!(red.run(db.transaction(work)).await.is_err());

    assert_eq!(blue.clone().run(tenant(&db)).await, "blue");
}

#[tokio::test]
async fn text_that_changes_a_setting_of_the_context_does_not_outlive_its_statement() {
    let db = one_connection();

    let context = db.with_context([("app.tenant", "mine")]);
    let work = context.run(async {
        for text in [
            "SET app.tenant = 'other'",
            "RESET ALL",
            "SELECT set_config('app.tenant', 'other', false)",
        ] {
            sqlx::raw_sql(text).execute(&db).await.unwrap();
            assert_eq!(tenant(&db).await, "mine", "{text}");
        }
    });
    work.await;

    assert_eq!(tenant(&db).await, "");
}

#[tokio::test]
async fn a_setting_that_the_server_refuses_is_an_error_and_harms_no_other_caller() {
    let db = one_connection();

    for wrong in [
        ("TimeZone", "Nowhere"),
        ("no_such_setting", "1"),
        ("app.x", "\0"),
    ] {
        let context = db.with_context([("app.tenant", "mine"), wrong]);
        let refused = context
            .run(async { sqlx::query(TENANT).execute(&db).await })
            .await;
        assert!(refused.is_err());
        assert_eq!(tenant(&db).await, "");
    }
}

#[tokio::test]
async fn settings_of_every_session_come_back_after_a_context() {
    let builder = Db::postgres(world::postgres::url()).max_size(1);
    let db = builder
        .setting("SET statement_timeout = '7s'")
        .build()
        .unwrap();
    let limit = async || -> String {
        let limit = sqlx::query_scalar("SELECT current_setting('statement_timeout')");
        limit.fetch_one(&db).await.unwrap()
    };

    let inside = db
        .with_context([("statement_timeout", "3s")])
        .run(limit())
        .await;

    assert_eq!((inside.as_str(), limit().await.as_str()), ("3s", "7s"));
}

#[tokio::test]
async fn a_context_costs_one_round_trip_per_scope_and_none_if_it_is_unchanged() {
    let server = cenote_servers::postgres::start_with(&[("log_statement", "all")]).unwrap();
    let db = Db::postgres(server.url()).max_size(1).build().unwrap();
    let applied = || server.log().matches("set_config").count();
    let scope = async |tenant: i32| {
        let context = db.with_context([("app.tenant", tenant)]);
        let work = context.run(async {
            for _ in 0..3 {
                sqlx::query("SELECT 1").execute(&db).await.unwrap();
            }
            let failed: Result<(), _> = db
                .transaction(async || {
                    sqlx::query("SELECT 2").execute(&db).await?;
                    Err(sqlx::Error::RowNotFound)
                })
                .await;
            assert!(failed.is_err());
        });
        work.await;
    };

    let mut counts = Vec::new();
    for tenant in [1, 1, 2, 2, 1] {
        scope(tenant).await;
        counts.push(applied());
    }
    sqlx::query("SELECT 3").execute(&db).await.unwrap();
    counts.push(applied());
    sqlx::query("SELECT 3").execute(&db).await.unwrap();
    counts.push(applied());

    assert_eq!(counts, [1, 1, 2, 2, 3, 4, 4]);
}

#[tokio::test]
async fn a_context_goes_with_a_sandbox() {
    let db: Db<Postgres> = Db::sandbox(world::postgres::url()).await.unwrap();

    let context = db.with_context([("app.tenant", "mine")]);
    let work = context.run(async {
        assert!(sqlx::query("SELECT 1 / 0").execute(&db).await.is_err());
        tenant(&db).await
    });

    assert_eq!(work.await, "mine");
    assert_eq!(tenant(&db).await, "");
}

#[tokio::test]
async fn mysql_has_variables_of_the_session_and_of_the_user_in_a_context() {
    let db: Db<MySql> = Db::mysql(world::mysql::url()).max_size(1).build().unwrap();
    let seen = async || -> (String, Option<String>) {
        let sql = "SELECT CAST(@@time_zone AS CHAR), CAST(@tenant AS CHAR)";
        sqlx::query_as(sql).fetch_one(&db).await.unwrap()
    };
    let usual = seen().await;

    let context = db.with_context([("time_zone", "+03:00"), ("@tenant", "it's")]);
    let inside = context.run(seen()).await;

    assert_eq!(inside, ("+03:00".into(), Some("it's".into())));
    assert_eq!(seen().await, usual);
    assert_eq!(usual.1, None);
    let wrong = db.with_context([("time_zone = 1, x", "1")]);
    let refused = wrong
        .run(async { sqlx::query("DO 1").execute(&db).await })
        .await;
    assert!(refused.is_err());
    assert_eq!(db.pool().status().opened, 1, "the connection was kept");
}

#[tokio::test]
async fn sqlite_has_no_context_and_says_so() {
    let db = Db::sqlite("sqlite::memory:").max_size(1).build().unwrap();

    let context = db.with_context([("tenant", 1)]);
    let refused = context
        .run(async { sqlx::query("SELECT 1").execute(&db).await })
        .await;

    let error = refused.unwrap_err();
    assert!(error.to_string().contains("SQLite has no"), "{error}");
    assert!(!sqlx::Sqlite::classify(&error).poisons());
}
