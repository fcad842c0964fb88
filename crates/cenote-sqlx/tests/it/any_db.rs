//! The database that the URL chooses at run time.

use cenote::{Config, Health};
use cenote_sqlx::{AnyDb, BuildError, Db};

use crate::world;

/// A program that does not know its database.
async fn program(db: &AnyDb, table: &str) -> Result<u64, sqlx::Error> {
    let sql = |text: &str| sqlx::AssertSqlSafe(text.replace("{}", table));
    db.execute(sql("DROP TABLE IF EXISTS {}")).await?;
    db.execute(sql("CREATE TABLE {} (id INTEGER PRIMARY KEY)"))
        .await?;
    db.transaction(async || {
        assert!(db.in_transaction());
        db.execute(sql("INSERT INTO {} VALUES (1)")).await?;
        db.execute(sql("INSERT INTO {} VALUES (2)")).await
    })
    .await?;
    let failed: Result<(), sqlx::Error> = db
        .transaction(async || {
            db.execute(sql("INSERT INTO {} VALUES (3)")).await?;
            Err(sqlx::Error::RowNotFound)
        })
        .await;
    assert!(failed.is_err() && !db.in_transaction());
    let gone = db.execute(sql("DELETE FROM {}")).await?;
    db.execute(sql("DROP TABLE {}")).await?;
    Ok(gone)
}

#[tokio::test]
async fn one_program_runs_on_the_database_of_its_url() {
    let (_, home) = world::sqlite::builder();
    let sqlite = format!("{}?mode=rwc", world::sqlite::url_at(&home));
    let urls = [
        (world::postgres::url(), "PostgreSQL"),
        (world::mysql::url(), "MySQL"),
        (sqlite, "SQLite"),
    ];
    for (url, database) in urls {
        let url = world::with_parameter(&url, "cenote.max_size=3");
        let db = AnyDb::from_url(url).unwrap();
        assert_eq!((db.database(), db.health()), (database, Health::Unproven));

        db.warm().await.unwrap();
        let gone = program(&db, "cenote_any_program").await.unwrap();

        assert_eq!(gone, 2, "{database}: the third was rolled back");
        assert_eq!((db.status().max_size, db.leases().len()), (3, 0));
        db.close().await;
        assert_eq!(db.health(), Health::Closed);
    }
}

#[test]
fn a_url_of_no_database_is_refused_without_its_password() {
    for url in [
        "oracle://user:secret@host/db",
        "user:secret@host",
        "",
        "/a/file.db",
    ] {
        let error = AnyDb::from_url(url).unwrap_err();
        let text = error.to_string();

        assert!(matches!(error, BuildError::UnknownScheme { .. }), "{text}");
        assert!(!format!("{text}{error:?}").contains("secret"), "{text}");
        assert!(
            text.contains("`postgres://`, `mysql://`, `sqlite:`"),
            "{text}"
        );
    }
}

#[test]
fn settings_of_a_file_are_overridden_by_the_url() {
    let config = Config {
        max_size: 5,
        min_idle: 1,
        ..Config::default()
    };
    let db = AnyDb::with_config("sqlite://x.db?cenote.max_size=7", config).unwrap();
    let AnyDb::Sqlite(inner) = &db else {
        panic!("{db:?}");
    };
    assert_eq!(inner.pool().config().max_size, 7);
    assert_eq!(inner.pool().config().min_idle, 1);

    let known: AnyDb = Db::sqlite("sqlite::memory:")
        .max_size(1)
        .build()
        .unwrap()
        .into();
    assert_eq!(known.database(), "SQLite");
}
