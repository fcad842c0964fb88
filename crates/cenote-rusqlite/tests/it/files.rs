//! Files that are missing, wrong, read-only, removed or replaced.

use std::fs;

use cenote::error::ErrorClass;
use cenote::{CloseReason, Manager};
use cenote_rusqlite::rusqlite::{self, Connection, ErrorCode, OpenFlags};
use cenote_rusqlite::{Class, Config, Db, Error};

use crate::{Disk, insert, number, patient, rows};

#[tokio::test]
async fn a_file_that_cannot_be_opened_is_not_worth_a_retry() {
    let disk = Disk::new("files-1");
    let missing = disk.path.join("no-such-folder");
    for builder in [
        Db::file(&missing),
        Db::url(format!("file:{}?mode=rw", disk.path.display())),
        Db::file(&disk.path).flags(OpenFlags::SQLITE_OPEN_READ_WRITE),
    ] {
        let db = patient(builder).build().unwrap();

        let error = db.read(|_| Ok::<_, rusqlite::Error>(())).await.unwrap_err();

        assert_eq!(error.class(), Class::Denied, "{error}");
        assert!(!error.is_retryable() && matches!(error, Error::Acquire(_)));
        assert!(error.to_string().contains("unable to open database file"));
        assert!(!disk.path.exists());
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_not_worth_a_retry() {
    let disk = Disk::new("files-2");
    fs::write(&disk.path, "to be or not to be, ".repeat(1000)).unwrap();
    let db = disk.builder().build().unwrap();

    let error = db.write(|tx| insert(tx, 1)).await.unwrap_err();

    let code = error.sqlite().unwrap().sqlite_error_code();
    assert_eq!(code, Some(ErrorCode::NotADatabase));
    assert_eq!(error.class(), Class::Denied);
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn the_breaker_is_told_the_class() {
    let disk = Disk::new("files-3");
    let db = Db::file(disk.path.join("no-such-folder")).build().unwrap();
    let Err(cenote::AcquireError::Open { error, .. }) = db.acquire().await else {
        panic!("it cannot be opened");
    };
    let cenote::OpenError::Failed(cause) = error else {
        panic!("{error}");
    };

    let class = db.pool().manager().classify(&cause);

    assert_eq!(class, ErrorClass::Denied);
}

#[tokio::test]
async fn a_read_only_database_is_read_and_not_written() {
    let disk = Disk::new("files-4");
    disk.db().await.write(|tx| insert(tx, 7)).await.unwrap();
    let url = format!("sqlite://{}?mode=ro", disk.path.display());
    let db = patient(Db::url(url)).build().unwrap();

    let error = db.write(|tx| insert(tx, 8)).await.unwrap_err();

    let code = error.sqlite().unwrap().sqlite_error_code();
    assert_eq!(code, Some(ErrorCode::ReadOnly), "{error}");
    assert!(!error.is_retryable());
    assert_eq!(rows(&db).await, 1);
}

#[tokio::test]
async fn a_connection_to_a_removed_file_is_not_lent_again() {
    let disk = Disk::new("files-5");
    let db = disk.db().await;
    assert_eq!(rows(&db).await, 0);
    disk.remove();

    crate::create(&db).await;
    db.write(|tx| insert(tx, 1)).await.unwrap();

    let found = Connection::open(&disk.path).unwrap();
    assert_eq!(number(&found, "SELECT count(*) FROM t").unwrap(), 1);
    assert_eq!(rows(&db).await, 1);
    assert_eq!(db.pool().status().closes.by(CloseReason::Broken), 2);
}

#[tokio::test]
async fn a_connection_to_a_replaced_file_is_not_lent_again() {
    let (disk, other) = (Disk::new("files-6"), Disk::new("files-6"));
    let (db, replaced) = (disk.db().await, other.db().await);
    replaced.write(|tx| insert(tx, 1)).await.unwrap();
    assert_eq!(rows(&db).await, 0);
    // The last connection moves its log into the file.
    let limit = std::time::Duration::from_secs(120);
    assert!(replaced.close_within(limit).await.is_empty());

    disk.remove();
    fs::rename(&other.path, &disk.path).unwrap();

    assert_eq!(rows(&db).await, 1);
}

#[tokio::test]
async fn settings_reach_every_connection() {
    let disk = Disk::new("files-7");
    let config = Config {
        url: disk.path.to_str().unwrap().to_owned(),
        settings: vec!["PRAGMA cache_size = -4321".to_owned()],
        ..Config::default()
    };
    let db = patient(Db::from_config(config))
        .init(|conn| conn.execute_batch("PRAGMA mmap_size = 1048576"))
        .build()
        .unwrap();
    let look = |conn: &mut Connection| {
        let mode: String = conn.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
        let pragma = |name| number(conn, &format!("PRAGMA {name}"));
        let seen = ["cache_size", "foreign_keys", "synchronous", "mmap_size"].map(pragma);
        Ok::<_, rusqlite::Error>((mode, seen.map(Result::unwrap)))
    };

    let (mut reader, mut writer) = (
        db.acquire().await.unwrap(),
        db.acquire_writer().await.unwrap(),
    );

    let expected = ("wal".to_owned(), [-4321, 1, 1, 1_048_576]);
    assert_eq!(reader.call(look).await.unwrap(), expected);
    assert_eq!(writer.call(look).await.unwrap(), expected);
}
