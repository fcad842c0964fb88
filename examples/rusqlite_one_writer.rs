//! Run: cargo run -p cenote-examples --example rusqlite_one_writer
//!
//! How do async tasks share one SQLite file through rusqlite?
//!
//! Closures run on the threads of the connections. Writers wait for each other, in order. Readers
//! do not wait, and a caller that gives up takes its statement with it.

use std::error::Error;
use std::time::Duration;

use cenote_rusqlite::rusqlite::{self, Connection};
use cenote_rusqlite::{Db, Error as DbError};
use tokio::time::timeout;

fn lines(conn: &mut Connection) -> rusqlite::Result<i64> {
    conn.query_row("SELECT count(*) FROM log", [], |row| row.get(0))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let db = Db::file(folder.path().join("log.db")).max_size(4).build()?;
    db.write(|tx| tx.execute_batch("CREATE TABLE log (line INTEGER)"))
        .await?;

    // Twenty writers at once: none of them gets `database is locked`.
    let mut writers = Vec::new();
    for line in 0..20 {
        let db = db.clone();
        writers.push(tokio::spawn(async move {
            let insert = db.write(move |tx| tx.execute("INSERT INTO log VALUES (?1)", [line]));
            insert.await
        }));
    }
    for writer in writers {
        writer.await??;
    }
    println!("twenty tasks wrote {} lines", db.read(lines).await?);
    assert_eq!(db.read(lines).await?, 20);

    // An error of any type rolls back.
    let refused = db.write(|tx| {
        tx.execute("DELETE FROM log", [])
            .map_err(|error| error.to_string())?;
        Err::<(), _>("the log must not be empty".to_owned())
    });
    let Err(DbError::Closure(reason)) = refused.await else {
        return Err("it was not refused".into());
    };
    println!("refused: {reason}");
    assert_eq!(db.read(lines).await?, 20);

    // A caller that gives up stops its query, and the connection is lent again.
    let endless = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) \
                   SELECT count(*) FROM n";
    let query = db.read(move |conn| conn.query_row(endless, [], |row| row.get::<_, i64>(0)));
    assert!(timeout(Duration::from_millis(50), query).await.is_err());
    assert!(db.close_within(Duration::from_secs(30)).await.is_empty());
    println!("and no query runs");
    Ok(())
}
