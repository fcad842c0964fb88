//! The handle on real files and in memory: calls, hygiene, cancellation, panics, writers, files and
//! the end of a pool.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod calls;
mod cancelled;
mod closing;
mod conformance;
mod contention;
mod files;
mod hygiene;
mod memory;
mod panics;
mod writers;

use std::path::{Path, PathBuf};
use std::time::Duration;

use cenote_rusqlite::rusqlite::{self, Connection};
use cenote_rusqlite::{Builder, Db};
use tempfile::TempDir;
use tokio::time::sleep;

/// A busy machine may take long, so a wait for a condition is long.
const TRIES: usize = 6000;

/// Waits for the effect of another thread.
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..TRIES {
        if holds() {
            return;
        }
        sleep(Duration::from_millis(5)).await;
    }
    panic!("never: {what}");
}

/// A database file in a folder that is removed with the test.
struct Disk {
    folder: TempDir,
    path: PathBuf,
}

impl Disk {
    /// Names the file, and with it the threads of its connections.
    fn new(name: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(name);
        Self { folder, path }
    }

    /// Begins to build a handle that waits for minutes rather than failing on a busy machine.
    fn builder(&self) -> Builder {
        patient(Db::file(&self.path))
    }

    /// Removes the database: the file, its log, and the index of that.
    fn remove(&self) {
        for file in std::fs::read_dir(self.folder.path()).unwrap() {
            std::fs::remove_file(file.unwrap().path()).unwrap();
        }
    }

    /// Returns a handle of a database with an empty table `t (n)`.
    async fn db(&self) -> Db {
        let db = self.builder().build().unwrap();
        create(&db).await;
        db
    }
}

fn patient(builder: Builder) -> Builder {
    let minutes = Duration::from_secs(120);
    builder
        .acquire_timeout(minutes)
        .open_timeout(minutes)
        .check_timeout(minutes)
        .clean_timeout(minutes)
        .close_timeout(minutes)
}

async fn create(db: &Db) {
    let created = db.write(|tx| tx.execute_batch("CREATE TABLE t (n)")).await;
    created.unwrap();
}

fn insert(connection: &Connection, n: i64) -> rusqlite::Result<usize> {
    connection.execute("INSERT INTO t VALUES (?1)", [n])
}

fn number(connection: &Connection, sql: &str) -> rusqlite::Result<i64> {
    connection.query_row(sql, [], |row| row.get(0))
}

/// Returns how many rows the table has.
async fn rows(db: &Db) -> i64 {
    let count = db.read(|conn| number(conn, "SELECT count(*) FROM t")).await;
    count.unwrap()
}

/// A query that never ends by itself.
fn for_ever(connection: &Connection) -> rusqlite::Result<i64> {
    number(
        connection,
        "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c",
    )
}

/// Returns how many threads of this process have a name that ends in this.
fn threads(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names
        .filter(|found| found.trim_end().ends_with(name))
        .count()
}

/// Returns how often this process has a file open.
fn times_open(file: &Path) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.filter(|target| target == file).count()
}
