//! The checks of SQLite. The file is opened to read only: the doctor changes nothing.

use std::fs::OpenOptions;
use std::path::Path;
use std::thread::available_parallelism;

use cenote_rusqlite::rusqlite::{Connection, OpenFlags};

use super::Plan;
use super::finding::{Finding, Severity};
use crate::failure::Failure;
use crate::out::thousands;
use crate::target::sqlite::file;

/// A log of this size is checkpointed slowly, and every reader searches it.
const LONG_LOG: u64 = 64 << 20;

pub(super) fn look(url: &str, plan: &Plan) -> Result<Vec<Finding>, Failure> {
    let Some(path) = file(url) else {
        return Err("a database in memory has nothing to check: name a file".into());
    };
    if !path.is_file() {
        let path = path.display();
        return Err(format!("there is no file `{path}`: check the path").into());
    }
    let unreadable = |error| {
        let path = path.display();
        Failure::from(format!(
            "`{path}` cannot be read: {error}; check that it is a database of SQLite, and its permissions"
        ))
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(&path, flags).map_err(unreadable)?;
    // The first read tells whether it is a database.
    let tables: i64 = db
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(unreadable)?;
    let journal: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    Ok(vec![
        Finding::ok(
            "file",
            format!("a database with {tables} tables and indexes"),
        ),
        journal_mode(&journal),
        permissions(&path),
        log_size(&path),
        busy_timeout(plan),
        readers(plan),
    ])
}

fn journal_mode(mode: &str) -> Finding {
    let evidence = format!("`journal_mode` is {mode}");
    if mode.eq_ignore_ascii_case("wal") {
        return Finding::ok("journal", evidence);
    }
    let fix = "run `PRAGMA journal_mode = WAL` once: readers and the writer wait for each other \
               otherwise. `cenote-rusqlite` does it at its first open";
    Finding::new(Severity::Warning, "journal", evidence, fix)
}

fn permissions(path: &Path) -> Finding {
    let writes = OpenOptions::new().append(true).open(path);
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let folder_is_read_only = folder
        .metadata()
        .is_ok_and(|found| found.permissions().readonly());
    match writes {
        Err(error) => Finding::new(
            Severity::Problem,
            "permissions",
            format!("this user cannot write to the file: {error}"),
            "give the user of the service the right to write, or open it with `?mode=ro`",
        ),
        Ok(_) if folder_is_read_only => Finding::new(
            Severity::Problem,
            "permissions",
            "the folder of the file is read-only, and the log of SQLite is written there",
            "give the user of the service the right to write to the folder",
        ),
        Ok(_) => Finding::ok(
            "permissions",
            "this user may write to the file and its folder",
        ),
    }
}

fn log_size(path: &Path) -> Finding {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let size = Path::new(&log).metadata().map_or(0, |found| found.len());
    let evidence = format!("the write-ahead log has {} KiB", thousands(size >> 10));
    if size <= LONG_LOG {
        return Finding::ok("log", evidence);
    }
    let fix = "look for a reader that keeps its transaction open, end it, and run \
               `PRAGMA wal_checkpoint(TRUNCATE)`";
    Finding::new(Severity::Warning, "log", evidence, fix)
}

fn busy_timeout(plan: &Plan) -> Finding {
    let acquire = plan.config.acquire_timeout;
    let shown = acquire.map_or("off".to_owned(), |limit| format!("{limit:?}"));
    let evidence = format!(
        "writers of one process wait in the pool (`acquire_timeout` {shown}), and for other \
         processes for the `busy_timeout` of the connection (5 s in `cenote-rusqlite`; SQLite's own \
         default is none)"
    );
    match plan.instances {
        1 => Finding::ok("busy timeout", evidence),
        _ => Finding::new(
            Severity::Note,
            "busy timeout",
            evidence,
            "several processes write to one file: keep write transactions short, and retry errors \
             of the class `Conflict`",
        ),
    }
}

fn readers(plan: &Plan) -> Finding {
    let cores = available_parallelism().map_or(1, |cores| cores.get());
    let size = plan.config.max_size;
    let evidence = format!("`max_size` is {size}, and the machine has {cores} cores");
    if size <= cores * 8 {
        return Finding::ok("readers", evidence);
    }
    let fix = "each reader is a thread that uses a core: try `cenote tune` and fewer of them";
    Finding::new(Severity::Note, "readers", evidence, fix)
}
