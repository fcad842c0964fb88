//! The sandbox: a handle on which everything happens in one connection and one transaction that is
//! never committed.
//!
//! The pool of a sandbox has one connection. Its transaction is open, and its lease is pinned in a
//! scope of the sandbox. Every bind of the handle runs in that scope, unless the caller is in a
//! transaction already. So statements of all tasks take turns, and every transaction is a
//! savepoint.

mod budget;
#[cfg(feature = "macros")]
mod databases;
pub(crate) mod dialects;
mod home;
#[cfg(feature = "macros")]
#[cfg_attr(
    not(any(feature = "postgres", feature = "mysql", feature = "sqlite")),
    expect(dead_code, reason = "for the databases, of which none is chosen")
)]
pub(crate) mod makes;
#[cfg(feature = "macros")]
pub(crate) mod runner;
mod session;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use cenote::Pool;
use cenote::scope::{BindError, Bound, Scope};
use sqlx::Error;

use self::dialects::Sandboxed;
use self::home::Ready;
use crate::build_error::BuildError;
use crate::db::Db;
use crate::dialect::Dialect;
use crate::error::{from_bind, from_bind_in_sandbox};
use crate::manager::Sql;

pub(crate) use self::budget::Slot;
pub(crate) use self::home::{go_home, open};

impl<DB: Dialect> Db<DB> {
    /// Returns a handle for a test. *Everything* on it, in every task that uses it, happens in one
    /// connection and one transaction that is never committed. Dropping the last clone rolls
    /// everything back.
    ///
    /// `begin`, `transaction` and the attribute `transactional` are savepoints in that transaction.
    /// Code under test needs no change: it commits, rolls back and retries as always. Statements of
    /// several tasks wait for each other, and so do transactions. An isolation level has no effect.
    ///
    /// All test processes of this machine together have at most 8 such connections to one server,
    /// and a sandbox waits for its turn. Sandboxes of one SQLite file run one after the other.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let url = format!("sqlite://{}/shop.db?mode=rwc", folder.path().display());
    /// use cenote_sqlx::Db;
    /// use sqlx::Sqlite;
    ///
    /// let db: Db<Sqlite> = Db::sandbox(&url).await?;
    /// sqlx::query("CREATE TABLE orders (item TEXT)").execute(&db).await?;
    /// let mut order = db.begin().await?;
    /// sqlx::query("INSERT INTO orders VALUES ('a chair')").execute(&mut order).await?;
    /// order.commit().await?;
    /// let orders: i64 = sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(&db).await?;
    /// assert_eq!(orders, 1);
    /// drop(db);
    ///
    /// let db = Db::sqlite(&url).build()?;
    /// assert!(sqlx::query("SELECT * FROM orders").execute(&db).await.is_err(), "rolled back");
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    ///
    /// # Limits
    /// Another connection does not see the data, so `NOTIFY` is not delivered. Sequences are not
    /// set back. Constraints that are checked at the commit are not checked. Text that ends a
    /// transaction is refused: `COMMIT`, and on MySQL everything that commits by itself, like
    /// `CREATE TABLE`. A test that needs any of that has to be `isolated`: see the attribute
    /// `test`. On MySQL a statement that is dropped before its end loses the sandbox.
    ///
    /// # Cancel safety
    /// Dropping this future gives up the turn.
    pub async fn sandbox(url: impl AsRef<str>) -> Result<Self, Error> {
        let url = url.as_ref();
        Self::sandbox_from(url, Ready::take::<DB>(url).await?).await
    }

    async fn sandbox_from(url: &str, ready: Ready) -> Result<Self, Error> {
        let wrong = |error: BuildError| Error::Configuration(Box::new(error));
        let builder = Self::from_url(url).max_size(1).min_size(0).min_idle(0);
        let builder = builder.idle_timeout(None).max_lifetime(None);
        let builder = builder.max_uses(None).leak_after(None);
        let db = builder.sandboxed(Key::new(url, ready)).build();
        let mut db = db.map_err(wrong)?;
        db.sandbox = Some(Arc::new(Sandbox::enter(db.pool().clone()).await?));
        Ok(db)
    }
}

/// The scope in which the connection of a sandbox is pinned. It ends with the last handle.
pub(crate) struct Sandbox<DB: Dialect> {
    scope: Scope,
    pool: Pool<Sql<DB>>,
}

impl<DB: Dialect> Sandbox<DB> {
    async fn enter(pool: Pool<Sql<DB>>) -> Result<Self, Error> {
        let scope = Scope::new();
        let mut bound = scope.run(pool.bind()).await.map_err(from_bind)?;
        Bound::pin(&mut bound);
        drop(bound);
        Ok(Self { scope, pool })
    }

    /// Binds the connection: in the scope of the sandbox, or in the scope of a transaction of the
    /// sandbox that the caller is in.
    pub(crate) async fn bind(&self, binding: impl Binding<DB>) -> Result<Bound<Sql<DB>>, Error> {
        let inside = Scope::current().is_some_and(|scope| scope.is_pinned(&self.pool));
        let bound = match inside {
            true => binding.await,
            false => self.scope.run(binding).await,
        };
        bound.map_err(from_bind_in_sandbox)
    }

    /// Ends the sandbox for all of its handles.
    pub(crate) fn end(&self) {
        // In this order, so that no task gets the connection after its rollback.
        self.pool.close();
        self.scope.end();
    }
}

impl<DB: Dialect> Drop for Sandbox<DB> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<DB: Dialect> fmt::Debug for Sandbox<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox").finish_non_exhaustive()
    }
}

/// A future that binds a connection.
pub(crate) trait Binding<DB: Dialect>:
    Future<Output = Result<Bound<Sql<DB>>, BindError<Error>>> + Send
{
}

impl<DB, F> Binding<DB> for F
where
    DB: Dialect,
    F: Future<Output = Result<Bound<Sql<DB>>, BindError<Error>>> + Send,
{
}

/// What the template of a sandbox knows: where its connection comes from and goes.
pub(crate) struct Key {
    url: String,
    /// Taken by the one open of the pool.
    ready: Mutex<Option<Ready>>,
}

impl Key {
    fn new(url: &str, ready: Ready) -> Self {
        Self {
            url: url.to_owned(),
            ready: Mutex::new(Some(ready)),
        }
    }

    fn take_ready(&self) -> Option<Ready> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        ready.take()
    }
}

/// The end of every error that a sandbox adds to those of its database.
pub(crate) const WAY_OUT: &str =
    "mark the test `#[cenote_sqlx::test(isolated)]`, which gets a database of its own";

/// Returns the text of an error that names the way out of a sandbox.
fn way_out(why: &str) -> String {
    format!("{why}, or {WAY_OUT}")
}

/// Returns the server or file whose budget the URL shares. `None`: it needs none.
fn place<DB: Dialect>(url: &str) -> Result<Option<String>, Error> {
    let (address, _) = crate::url::split(url);
    let options = address.parse()?;
    Ok(<DB as Sandboxed>::place(&options))
}
