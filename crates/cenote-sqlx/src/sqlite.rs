//! SQLite.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_core::future::BoxFuture;
use futures_core::stream::BoxStream;
use sqlx::error::DatabaseError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection, Error, Executor, Sqlite};
use sqlx_core::transaction::TransactionManager;

use crate::builder::{BuildError, Credentials, Draft};
use crate::dialect::{Dialect, statements};
use crate::error::{self, Class, lost};
use crate::scan::{Dirt, Word, words};
use crate::session::Flight;
use crate::template::Template;
use crate::transaction::TransactionOptions;

/// How long a writer of another process is waited for.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How many steps of SQLite's machine lie between two looks at the brake: some tenths of a millisecond.
const STEPS: i32 = 10_000;

statements!(Sqlite);

impl Dialect for Sqlite {
    const PROBE: &'static str = "SELECT 1";
    const ONE_WRITER: bool = true;

    fn classify(error: &Error) -> Class {
        error::classify(error, judge)
    }

    /// After these the whole transaction may be gone: out of memory, interrupted, I/O, full.
    fn gives_up(error: &Error) -> bool {
        let code = error.as_database_error().map(kind_of);
        matches!(code, Some(7 | 9 | 10 | 13))
    }

    fn scan(sql: &str) -> Dirt {
        words(sql, judge_word)
    }

    /// A statement that begins with one of these and names no verb that writes.
    fn is_read(sql: &str) -> bool {
        let mut reads = true;
        words(sql, |word| {
            reads &= match word.text {
                "select" | "values" | "with" | "explain" => true,
                "insert" | "update" | "delete" | "replace" => false,
                _ => !word.first,
            };
            Dirt::NONE
        });
        reads
    }

    /// Good defaults under concurrency for what the URL says nothing about, and one connection for a database that lives in it,
    /// unless it is to be shared: there readers and writers lock each other out.
    fn template(
        options: SqliteConnectOptions,
        draft: &mut Draft,
    ) -> Result<SqliteConnectOptions, BuildError> {
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

    /// SQLite goes on with a file that has lost its name, and nobody will ever see what it writes there.
    fn is_astray(brake: &Brake, template: &Template<Self>) -> bool {
        brake.file.is_some() && identity(template.options.get_filename()) != brake.file
    }

    /// The driver's thread finishes what it was given, one after the other: an answer proves that it is done.
    async fn settle(
        connection: &mut SqliteConnection,
        _: Flight,
        brake: &Brake,
        _: &Template<Self>,
        care: bool,
    ) -> Result<(), Error> {
        brake.pulled.store(!care, Ordering::Relaxed);
        let answered = connection.ping().await;
        brake.pulled.store(false, Ordering::Relaxed);
        answered?;
        if !connection.is_in_transaction() {
            // After a commit that nobody waited for, the driver ignores the next rollback: let it be this one, which does nothing.
            <Sqlite as sqlx::Database>::TransactionManager::start_rollback(connection);
        }
        Ok(())
    }

    /// A new connection is cheaper than finding out what was changed.
    async fn reset(_: &mut SqliteConnection, _: Dirt) -> Result<(), Error> {
        Err(lost(
            "the session was changed, and this database offers no reset",
        ))
    }

    /// Who means to write takes the lock at once, and cannot fail halfway. Every isolation level that can be asked for is kept.
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

/// By what a connection can be stopped, and which file it has open.
#[doc(hidden)]
#[derive(Debug)]
pub struct Brake {
    /// Set while what runs is to be given up.
    pulled: Arc<AtomicBool>,
    file: Option<Identity>,
}

/// The device of a file, and its number there.
type Identity = (u64, u64);

/// Which file has this name now, if one has. Where a file that is open cannot lose its name, nobody needs to know.
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

/// The options keep it to themselves, but for their `Debug`; and the URL that they make can panic.
fn is_in_memory(options: &SqliteConnectOptions) -> bool {
    let shown = format!("{options:?}");
    shown.contains("in_memory: true") || options.get_filename() == Path::new(":memory:")
}

/// With its last connection the database is gone. One that is shared is held by one more.
fn in_memory(
    mut options: SqliteConnectOptions,
    draft: &mut Draft,
) -> Result<SqliteConnectOptions, BuildError> {
    let shares = format!("{options:?}").contains("shared_cache: true");
    let asked = shares && (draft.shared || !draft.from_url);
    if draft.config.max_size > 1 && !asked {
        return Err(BuildError::InMemory {
            max_size: draft.config.max_size,
        });
    }
    let name = options.get_filename().to_string_lossy().into_owned();
    let named = name.starts_with("file:");
    if asked && !named {
        // SQLite shares only what has such a name. Each connection would have a database of its own.
        options = options.filename(format!("file:{name}"));
    }
    draft.fleeting = asked || shares && named;
    if !draft.fleeting {
        draft.config.idle_timeout = None;
        draft.config.max_lifetime = None;
    }
    Ok(options)
}

/// The low byte of the code is the kind, the rest says more.
fn kind_of(error: &(dyn DatabaseError + 'static)) -> i32 {
    let code = error.code().and_then(|code| code.parse::<i32>().ok());
    code.unwrap_or_default() & 0xff
}

fn judge(error: &(dyn DatabaseError + 'static)) -> Class {
    match kind_of(error) {
        // Busy, locked.
        5 | 6 => Class::Conflict,
        // I/O, corrupt, cannot open, misuse, not a database.
        10 | 11 | 14 | 21 | 26 => Class::Broken,
        _ => Class::Statement,
    }
}

fn judge_word(word: Word<'_>) -> Dirt {
    match word.text {
        "begin" | "commit" | "end" | "rollback" | "savepoint" | "release" if word.first => {
            Dirt::TRANSACTION
        }
        "pragma" | "attach" | "detach" if word.first => Dirt::STATE,
        "temp" | "temporary" | "sqlite_temp_schema" | "sqlite_temp_master" | "load_extension" => {
            Dirt::STATE
        }
        _ => Dirt::NONE,
    }
}
