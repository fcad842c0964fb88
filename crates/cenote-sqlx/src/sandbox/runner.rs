//! The functions that the expansion of `#[cenote_sqlx::test]` uses.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::time::Duration;

use sqlx::Error;
use sqlx::migrate::Migrator;

use super::databases::{Databases, Isolated};
use super::home::Ready;
use super::makes::Makes;
use super::place;
use crate::db::Db;
use crate::dialect::Statements;

/// How long the end of a test waits for connections that its tasks still use.
const END: Duration = Duration::from_secs(5);

/// Makes an `async fn` a test that gets a handle, in a [sandbox](crate::Db::sandbox): whatever it
/// writes is rolled back.
///
/// ```
/// # #[cfg(feature = "sqlite")] mod example {
/// use cenote_sqlx::Db;
/// use sqlx::Sqlite;
///
/// #[cenote_sqlx::test(url = "sqlite::memory:")]
/// async fn an_order_is_counted(db: Db<Sqlite>) -> Result<(), sqlx::Error> {
///     sqlx::query("CREATE TABLE orders (item TEXT)").execute(&db).await?;
///     sqlx::query("INSERT INTO orders VALUES ('a chair')").execute(&db).await?;
///     let orders: i64 = sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(&db).await?;
///     assert_eq!(orders, 1);
///     Ok(())
/// }
/// # }
/// ```
///
/// The type of the argument chooses the database. The test has a runtime of its own with one
/// thread, like `#[tokio::test]`. It runs under `cargo test` and under nextest.
///
/// | option | |
/// |---|---|
/// | `url = ..` | an expression for the URL; without it the environment variable `DATABASE_URL` at run time |
/// | `migrations = "migrations"` | the folder of migrations, from the folder of the crate. They run once, in a database of their own on the same server, which the tests with the same migrations share |
/// | `fixtures("users", "orders")` | runs `fixtures/users.sql` and `fixtures/orders.sql`, from the folder of the source file, in the sandbox |
/// | `isolated` | no sandbox, but a database of its own with up to 3 connections, for DDL, `NOTIFY` or several connections. It has the migrations and is dropped afterwards |
///
/// All test processes of a machine together have at most 8 connections to one server, so no number
/// of tests meets `too many connections`. After a killed test the server rolls back, and the next
/// isolated test drops the database that was left.
///
/// `migrations` and `isolated` need the right to create databases. An isolated test without
/// `migrations` begins with an empty database.
#[doc(inline)]
pub use cenote_macros::test;

/// The options of a test.
#[derive(Debug)]
pub struct Plan {
    /// The URL, if it is not the one of the environment.
    pub url: Option<String>,
    /// The migrations.
    pub migrator: Option<Migrator>,
    /// The text of the fixtures.
    pub fixtures: &'static [&'static str],
    /// Whether the test has a database of its own.
    pub isolated: bool,
}

/// Runs a test in a runtime of its own.
pub fn run<DB, Fut>(plan: Plan, test: impl FnOnce(Db<DB>) -> Fut) -> Fut::Output
where
    DB: Makes,
    Fut: Future,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("the system allows one more runtime");
    runtime.block_on(async {
        let ground = Ground::prepare(&plan).await;
        let ground = ground.unwrap_or_else(|error| panic!("no database for this test: {error}"));
        let ended = caught(test(ground.db.clone())).await;
        let left = ground.leave().await;
        match ended {
            Ok(value) => {
                left.unwrap_or_else(|error| panic!("the database of this test is left: {error}"));
                value
            }
            Err(panic) => resume_unwind(panic),
        }
    })
}

/// Awaits the future. A panic in it is returned, so that the database can be left in order.
async fn caught<F: Future>(future: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(panic)),
        }
    })
    .await
}

/// The database of a test.
struct Ground<DB: Makes> {
    db: Db<DB>,
    isolated: Option<Isolated<DB>>,
}

impl<DB: Makes> Ground<DB> {
    async fn prepare(plan: &Plan) -> Result<Self, Error> {
        let url = match &plan.url {
            Some(url) => url.clone(),
            None => std::env::var("DATABASE_URL").map_err(|_| {
                let text = "`DATABASE_URL` is not set: set it, or write \
                            `#[cenote_sqlx::test(url = ..)]`";
                Error::Configuration(text.into())
            })?,
        };
        let ground = match place::<DB>(&url)? {
            Some(place) => Self::on_server(plan, &url, &place).await?,
            None => Self::in_memory(plan, &url).await?,
        };
        for fixture in plan.fixtures {
            let mut lease = ground.db.acquire().await?;
            lease.session().start(fixture).await?;
            let connection = &mut lease.session().connection;
            let run = <DB as Statements>::run(connection, fixture).await;
            lease.session().complete(run).await?;
        }
        Ok(ground)
    }

    async fn on_server(plan: &Plan, url: &str, place: &str) -> Result<Self, Error> {
        let databases = Databases::<DB>::new(url, place, plan.migrator.as_ref())?;
        if plan.isolated {
            let (db, isolated) = databases.isolate().await?;
            let isolated = Some(isolated);
            return Ok(Self { db, isolated });
        }
        let base = databases.base_url();
        let ready = Ready::take::<DB>(&base).await?;
        // The right to a connection is used for this one first.
        databases.prepare_base().await?;
        let db = Db::sandbox_from(&base, ready).await?;
        Ok(Self { db, isolated: None })
    }

    /// A database in memory belongs to the test anyway.
    async fn in_memory(plan: &Plan, url: &str) -> Result<Self, Error> {
        let db: Db<DB> = match plan.isolated {
            false => Db::sandbox(url).await?,
            true => {
                let db = Db::from_url(url).max_size(1).build();
                db.map_err(|error| Error::Configuration(Box::new(error)))?
            }
        };
        if let Some(migrator) = &plan.migrator {
            let mut lease = db.acquire().await?;
            migrator.run_direct(None, &mut *lease, false).await?;
            // The session was not changed, and without it the database would be lost.
            lease.session().state.dirt = crate::dirt::Dirt::NONE;
        }
        Ok(Self { db, isolated: None })
    }

    async fn leave(self) -> Result<(), Error> {
        if let Some(sandbox) = &self.db.sandbox {
            sandbox.end();
        }
        self.db.pool().close_within(END).await;
        match self.isolated {
            Some(isolated) => isolated.remove().await,
            None => Ok(()),
        }
    }
}
