//! SeaORM on the database that a URL chooses, and what only one database has.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cenote_sqlx::{AnyDb, Db, OrmError, Retry};
use sea_orm::{
    ConnectionTrait, DbBackend, DbErr, SqliteTransactionMode, Statement, TransactionOptions,
    TransactionTrait,
};

use crate::bakery::{bake, build, cakes, day};
use crate::world;

#[tokio::test]
async fn one_program_uses_entities_on_the_database_of_its_url() {
    let (_, home) = world::sqlite::builder();
    let schema = format!("cenote_oany_{}", std::process::id());
    let urls = [
        (world::postgres::inside(&(), &schema), DbBackend::Postgres),
        (world::mysql::inside(&(), &schema), DbBackend::MySql),
        (world::sqlite::inside(&home, ""), DbBackend::Sqlite),
    ];
    let admins = [world::postgres::url(), world::mysql::url()].map(AnyDb::from_url);
    for admin in &admins {
        let create = sqlx::AssertSqlSafe(format!("CREATE SCHEMA {schema}"));
        admin.as_ref().unwrap().execute(create).await.unwrap();
    }
    for (url, backend) in urls {
        let db = AnyDb::from_url(url).unwrap();
        assert_eq!(ConnectionTrait::get_database_backend(&db), backend);

        build(&db).await.unwrap();
        day(&db).await.unwrap();
        let ambient = db.transaction(async || {
            let nested = TransactionTrait::begin(&db).await?;
            bake(&nested, "x").await?;
            nested.commit().await?;
            Err::<(), _>(OrmError(DbErr::Custom("enough".into())))
        });
        assert_eq!(ambient.await.unwrap_err().0, DbErr::Custom("enough".into()));
        let begun = TransactionTrait::begin(&db).await.unwrap();
        bake(&begun, "y").await.unwrap();
        begun.commit().await.unwrap();

        assert_eq!(cakes(&db).await.unwrap(), ["b", "y", "z"]);
        assert_eq!(db.status().in_use, 0);
        db.close().await;
    }
    for (admin, cascade) in admins.iter().zip(["CASCADE", ""]) {
        let drop = sqlx::AssertSqlSafe(format!("DROP SCHEMA {schema} {cascade}"));
        admin.as_ref().unwrap().execute(drop).await.unwrap();
    }
}

#[tokio::test]
async fn the_mode_of_a_transaction_of_sqlite_is_the_one_that_was_asked_for() {
    let (builder, home) = world::sqlite::builder();
    let db = builder.build().unwrap();
    build(&db).await.unwrap();
    let other = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(home.path().join("test.db"))
        .busy_timeout(Duration::from_millis(1));
    let other = Db::<sqlx::Sqlite>::with_options(other).build().unwrap();
    let mode = |mode| TransactionOptions {
        sqlite_transaction_mode: Some(mode),
        ..TransactionOptions::default()
    };

    let deferred = db.begin_with_options(mode(SqliteTransactionMode::Deferred));
    let deferred = deferred.await.unwrap();
    bake(&other, "a").await.expect("no lock is taken yet");
    deferred.rollback().await.unwrap();
    for locking in [
        SqliteTransactionMode::Immediate,
        SqliteTransactionMode::Exclusive,
    ] {
        let locked = db.begin_with_options(mode(locking)).await.unwrap();
        let busy = bake(&other, "b").await.unwrap_err();
        assert!(busy.to_string().contains("locked"), "{busy}");
        let nested = locked.begin_with_options(mode(locking)).await;
        nested
            .expect("a savepoint has no mode")
            .rollback()
            .await
            .unwrap();
        locked.rollback().await.unwrap();
    }
    let ambient = db.transaction(async || {
        let immediate = mode(SqliteTransactionMode::Immediate);
        let nested = db.begin_with_options(immediate).await?;
        nested.rollback().await?;
        Ok::<_, OrmError>(())
    });
    ambient
        .await
        .expect("nor has one in an ambient transaction");

    assert_eq!(cakes(&db).await.unwrap(), ["a"]);
}

/// A commit that the server refuses is an error, also if every statement before it succeeded.
#[tokio::test]
async fn a_commit_that_the_server_refuses_is_an_error() {
    let (builder, _home) = world::sqlite::builder();
    let sqlite = AnyDb::from(builder.build().unwrap());
    let (builder, ()) = world::postgres::builder();
    let postgres = AnyDb::from(builder.max_size(2).build().unwrap());
    let table = format!("cenote_orm_refused_{}", std::process::id());
    for db in [sqlite, postgres] {
        let text = |text: &str| text.replace("{}", &table);
        let create = "CREATE TABLE {} (id INTEGER PRIMARY KEY, \
            parent INTEGER REFERENCES {} DEFERRABLE INITIALLY DEFERRED)";
        db.execute_unprepared(&text(create)).await.unwrap();
        let orphan = text("INSERT INTO {} VALUES (1, 2)");

        let begun = TransactionTrait::begin(&db).await.unwrap();
        begun.execute_unprepared(&orphan).await.unwrap();
        let refused = begun.commit().await.unwrap_err();
        let called = TransactionTrait::transaction::<_, _, DbErr>(&db, |transaction| {
            let orphan = orphan.clone();
            Box::pin(async move { transaction.execute_unprepared(&orphan).await })
        });

        assert!(refused.sql_err().is_some(), "{refused:?}");
        let called = called.await.map(drop);
        assert!(
            matches!(called, Err(sea_orm::TransactionError::Connection(_))),
            "{called:?}"
        );
        let count = text("SELECT id FROM {}");
        let count = Statement::from_string(db.get_database_backend(), count);
        assert!(db.query_all_raw(count).await.unwrap().is_empty());
        assert_eq!(db.status().in_use, 0);
        db.execute_unprepared(&text("DROP TABLE {}")).await.unwrap();
    }
}

#[tokio::test]
async fn a_conflict_behind_an_error_of_seaorm_is_tried_again() {
    let (builder, ()) = world::postgres::builder();
    let db = builder.max_size(1).build().unwrap();
    let tried = AtomicU32::new(0);
    let conflict = "DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END $$";
    let retry = Retry {
        attempts: 4,
        first_rest: Duration::from_millis(1),
        ..Retry::default()
    };

    let work = db.retrying(retry, async || {
        match tried.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => db.execute_unprepared(conflict).await?,
            _ => db.execute_unprepared("SELECT 1").await?,
        };
        Ok::<_, OrmError>(())
    });
    work.await.unwrap();

    assert_eq!(tried.load(Ordering::Relaxed), 3);
}

#[cfg(feature = "macros")]
#[tokio::test]
async fn a_transactional_function_uses_entities() {
    #[cenote_sqlx::transactional]
    async fn both(db: &Db<sqlx::Sqlite>, one: &str, two: &str) -> Result<(), OrmError> {
        bake(db, one).await?;
        bake(db, two).await?;
        Ok(())
    }
    let (builder, _home) = world::sqlite::builder();
    let db = builder.build().unwrap();
    build(&db).await.unwrap();

    both(&db, "a", "b").await.unwrap();
    let failed = both(&db, "c", "a").await.unwrap_err();

    assert!(failed.0.sql_err().is_some(), "{failed}");
    assert_eq!(cakes(&db).await.unwrap(), ["a", "b"]);
}
