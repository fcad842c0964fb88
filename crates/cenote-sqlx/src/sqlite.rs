//! The dialect of SQLite.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_core::future::BoxFuture;
use futures_core::stream::BoxStream;
use sqlx::error::DatabaseError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection, Error, Executor, Sqlite};
use sqlx_core::transaction::TransactionManager;

use crate::build_error::BuildError;
use crate::builder::Draft;
use crate::credentials::Credentials;
use crate::dialect::{Dialect, statements};
use crate::dirt::Dirt;
use crate::error::{self, Class, lost, pool_error};
use crate::lexer::Language;
use crate::session::Progress;
use crate::template::Template;
use crate::transaction::TransactionOptions;
use crate::url;

/// How long a statement waits for a writer in another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How many steps SQLite's virtual machine runs between two looks at the brake: some tenths of a
/// millisecond.
const STEPS: i32 = 10_000;

statements!(Sqlite);

impl Dialect for Sqlite {
    const LANGUAGE: Language = Language::Sqlite;
    const PROBE: &'static str = "SELECT 1";
    const ONE_WRITER: bool = true;

    fn classify(error: &Error) -> Class {
        let opening = pool_error(error).and_then(error::cause);
        match opening.and_then(Error::as_database_error).map(kind_of) {
            // No permission, cannot open, not authorized, no database.
            Some(3 | 14 | 23 | 26) => Class::Denied,
            _ => error::classify_by(error, judge),
        }
    }

    /// These may roll the whole transaction back: out of memory, interrupted, I/O, disk full.
    fn gives_up(error: &Error) -> bool {
        let code = error.as_database_error().map(kind_of);
        matches!(code, Some(7 | 9 | 10 | 13))
    }

    /// SQLite refuses to change this setting in a transaction, also to the value that it has.
    async fn is_open(connection: &mut SqliteConnection) -> Result<bool, Error> {
        let level = sqlx::query_scalar::<_, i64>("PRAGMA synchronous").persistent(false);
        let level = level.fetch_one(&mut *connection).await?;
        let again = sqlx::AssertSqlSafe(format!("PRAGMA synchronous = {level}"));
        match connection.execute(again).await {
            Ok(_) => Ok(false),
            Err(Error::Database(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Sets defaults for concurrency that a URL cannot express. A database in memory gets one
    /// connection, unless it is shared.
    fn template(
        options: SqliteConnectOptions,
        draft: &mut Draft,
    ) -> Result<SqliteConnectOptions, BuildError> {
        if is_memdb(&options) {
            return Err(BuildError::Parameter(String::from(
                "`vfs=memdb`: the database would be lost with its connection, use `sqlite::memory:`",
            )));
        }
        if is_in_memory(&options) {
            return in_memory(options, draft);
        }
        if !draft.from_url {
            return Ok(options);
        }
        Ok(options
            .busy_timeout(BUSY_TIMEOUT)
            .foreign_keys(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal))
    }

    fn with_credentials(_: SqliteConnectOptions, _: &Credentials) -> Option<SqliteConnectOptions> {
        None
    }

    type Brake = Brake;

    async fn brake(
        connection: &mut SqliteConnection,
        template: &Template<Self>,
    ) -> Result<Brake, Error> {
        let brake = Brake {
            pulled: Arc::default(),
            file: identity(template.options.get_filename()),
        };
        let pulled = Arc::clone(&brake.pulled);
        let mut handle = connection.lock_handle().await?;
        handle.set_progress_handler(STEPS, move || !pulled.load(Ordering::Relaxed));
        drop(handle);
        Ok(brake)
    }

    /// After its file was removed or replaced, a connection goes on with a file that has no name,
    /// and whatever it writes is lost.
    fn is_astray(brake: &Brake, template: &Template<Self>) -> bool {
        brake.file.is_some() && identity(template.options.get_filename()) != brake.file
    }

    /// The thread of the driver works in order, so an answer to a ping proves that the operation is
    /// over.
    async fn settle(
        connection: &mut SqliteConnection,
        _: Progress,
        brake: &Brake,
        _: &Template<Self>,
        care: bool,
    ) -> Result<(), Error> {
        brake.pulled.store(!care, Ordering::Relaxed);
        let answered = connection.ping().await;
        brake.pulled.store(false, Ordering::Relaxed);
        answered?;
        if !connection.is_in_transaction() {
            // After a dropped commit the driver ignores one rollback. This one has no effect, so
            // that no later one is ignored.
            <Sqlite as sqlx::Database>::TransactionManager::start_rollback(connection);
        }
        Ok(())
    }

    /// SQLite has no reset, and a new connection is cheap.
    async fn reset(_: &mut SqliteConnection, _: Dirt) -> Result<(), Error> {
        Err(lost("the session was changed, and it cannot be reset"))
    }

    /// A transaction that may write takes the lock at once, so that it cannot fail halfway. Every
    /// isolation level is granted, because SQLite is serializable.
    fn begin(options: &TransactionOptions) -> Option<String> {
        Some(if options.read_only {
            String::from("BEGIN; PRAGMA query_only = 1")
        } else {
            String::from("BEGIN IMMEDIATE")
        })
    }

    fn after(options: &TransactionOptions) -> Option<&'static str> {
        options.read_only.then_some("PRAGMA query_only = 0")
    }
}

/// The means to stop a connection, and the identity of its file.
#[doc(hidden)]
#[derive(Debug)]
pub struct Brake {
    /// Set while the running statement must stop.
    pulled: Arc<AtomicBool>,
    file: Option<Identity>,
}

/// The device and the inode of a file.
type Identity = (u64, u64);

/// Returns the identity of the file with this name, if there is one. On systems where an open file
/// cannot be removed, the identity is not needed.
fn identity(name: &Path) -> Option<Identity> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let file = std::fs::metadata(name).ok()?;
        Some((file.dev(), file.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = name;
        None
    }
}

/// Returns whether the database is in memory. Only `Debug` of the options shows it: their URL does
/// not, and making it can panic.
pub(crate) fn is_in_memory(options: &SqliteConnectOptions) -> bool {
    let name = options.get_filename().to_string_lossy();
    let by_name = match name.strip_prefix("file:") {
        Some(uri) => uri.starts_with(":memory:") || url::has_parameter(uri, "mode=memory"),
        // A database without a name is a file that is removed with its connection.
        None => matches!(&*name, "" | ":memory:"),
    };
    by_name || format!("{options:?}").contains("in_memory: true")
}

/// Returns whether this VFS has the database in memory, which neither a name nor an option shows.
fn is_memdb(options: &SqliteConnectOptions) -> bool {
    let shown = format!("{options:?}");
    shown.contains(r#"vfs: Some("memdb")"#) || shown.contains("vfs=memdb")
}

/// Checks and completes the options of a database in memory, which is lost with its last
/// connection. One more connection keeps it alive, so it is always shared. One that need not be
/// shared with others gets a name of its own.
fn in_memory(
    mut options: SqliteConnectOptions,
    draft: &mut Draft,
) -> Result<SqliteConnectOptions, BuildError> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let name = options.get_filename().to_string_lossy().into_owned();
    let shares = format!("{options:?}").contains("shared_cache: true")
        || url::has_parameter(&name, "cache=shared");
    let asked = shares && (draft.shared || !draft.from_url);
    if draft.config.max_size > 1 && !asked {
        return Err(BuildError::InMemory {
            max_size: draft.config.max_size,
        });
    }
    // SQLite shares only a database with such a name. With another name each connection would have
    // a database of its own.
    if !asked {
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        options = options.filename(format!("file:cenote-in-memory-{number}"));
    } else if !name.starts_with("file:") {
        options = options.filename(format!("file:{name}"));
    }
    draft.fleeting = true;
    Ok(options.in_memory(true).shared_cache(true))
}

/// Returns the primary code of an error: the low byte of its extended code.
fn kind_of(error: &(dyn DatabaseError + 'static)) -> i32 {
    let code = error.code().and_then(|code| code.parse::<i32>().ok());
    code.unwrap_or_default() & 0xff
}

pub(crate) fn judge(error: &(dyn DatabaseError + 'static)) -> Class {
    match kind_of(error) {
        // Busy, locked.
        5 | 6 => Class::Conflict,
        // I/O, corrupt, cannot open, misuse, no database.
        10 | 11 | 14 | 21 | 26 => Class::Broken,
        _ => Class::Statement,
    }
}
