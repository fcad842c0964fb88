//! Run: cargo run --release -p cenote-rusqlite --example rusqlite_overhead
//!
//! What does a read cost beside the query itself? It prints the time per read of one row by its
//! key: on a bare connection, by `Db::read`, and on a thread for blocking calls of tokio.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use cenote_rusqlite::Db;
use cenote_rusqlite::rusqlite::{self, Connection};
use tokio::task::spawn_blocking;

const READS: u32 = 50_000;

fn query(conn: &Connection) -> rusqlite::Result<i64> {
    let mut statement = conn.prepare_cached("SELECT n FROM t WHERE id = 7")?;
    statement.query_row([], |row| row.get(0))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("overhead.db");
    let db = Db::file(&path).build()?;
    db.write(|tx| {
        tx.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, n); INSERT INTO t VALUES (7, 1)")
    })
    .await?;

    let bare = Connection::open(&path)?;
    let begun = SystemTime::now();
    for _ in 0..READS {
        query(&bare)?;
    }
    show("a bare connection", begun.elapsed()?);

    let begun = SystemTime::now();
    for _ in 0..READS {
        db.read(|conn| query(conn)).await?;
    }
    show("`Db::read`", begun.elapsed()?);

    let bare = Arc::new(Mutex::new(bare));
    let begun = SystemTime::now();
    for _ in 0..READS {
        let bare = Arc::clone(&bare);
        let read = move || query(&bare.lock().unwrap_or_else(PoisonError::into_inner));
        spawn_blocking(read).await??;
    }
    show("`spawn_blocking`", begun.elapsed()?);
    Ok(())
}

fn show(what: &str, took: Duration) {
    let each = took / READS;
    println!("{what:<20} {:>8.2} µs per read", each.as_secs_f64() * 1e6);
}
