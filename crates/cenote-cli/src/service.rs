//! A pool under measurement: statements of any kind of server, one lease each.

use std::sync::Arc;
use std::time::Duration;

use cenote::{Config, Status};
use cenote_rusqlite::{Db, rusqlite};

use crate::failure::Failure;
use crate::target::{self, Places, Target};

/// Statements are short, so closing takes far less time.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// How often the short statement of the built-in mix is chosen for one of the longer ones.
const SHORT: usize = 9;

#[derive(Debug)]
pub(crate) struct Service {
    pool: Pooled,
    statements: Vec<Statement>,
    /// Send statements to PostgreSQL as text.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "PostgreSQL only")
    )]
    simple: bool,
}

#[derive(Debug)]
enum Pooled {
    Sqlite(Db),
    #[cfg(feature = "postgres")]
    Postgres(cenote_postgres::Pool),
    #[cfg(feature = "mysql")]
    Mysql(Quiet<cenote_mysql::Pool>),
    #[cfg(feature = "redis")]
    Redis(Quiet<cenote_redis::Pool>),
}

#[derive(Debug)]
struct Statement {
    text: Arc<str>,
    /// SQLite has one connection for these.
    writes: bool,
}

impl Service {
    /// Builds a pool and opens a first connection. Without SQL, a mix is run that needs no table.
    pub(crate) async fn open(
        target: &Target,
        config: Config,
        sql: &[String],
        simple: bool,
    ) -> Result<Self, Failure> {
        let pool = match target {
            Target::Sqlite(url) => Pooled::Sqlite(target::sqlite::open(url, config).await?),
            #[cfg(feature = "postgres")]
            Target::Postgres(url) => Pooled::Postgres(target::postgres::open(url, config).await?),
            #[cfg(feature = "mysql")]
            Target::Mysql(url) => Pooled::Mysql(Quiet(target::mysql::open(url, config).await?)),
            #[cfg(feature = "redis")]
            Target::Redis(url) => Pooled::Redis(Quiet(target::redis::open(url, config).await?)),
        };
        let texts: Vec<String> = match sql {
            [] => mix(target),
            sql => sql.to_vec(),
        };
        let mut statements = Vec::new();
        for text in texts {
            let writes = match &pool {
                Pooled::Sqlite(db) => writes(db, text.clone()).await?,
                #[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
                _ => false,
            };
            let text = text.into();
            statements.push(Statement { text, writes });
        }
        Ok(Self {
            pool,
            statements,
            simple,
        })
    }

    /// Takes a connection, runs one of the statements and reads all its rows.
    pub(crate) async fn run(&self) -> Result<(), Failure> {
        let nth = fastrand::usize(..self.statements.len());
        let Statement { text, writes } = &self.statements[nth];
        match &self.pool {
            Pooled::Sqlite(db) => {
                let sql = Arc::clone(text);
                match writes {
                    true => db.write(move |tx| read_all(tx, &sql)).await?,
                    false => db.read(move |conn| read_all(conn, &sql)).await?,
                }
            }
            #[cfg(feature = "postgres")]
            Pooled::Postgres(pool) if self.simple => {
                pool.acquire().await?.simple_query(text).await?;
            }
            #[cfg(feature = "postgres")]
            Pooled::Postgres(pool) => {
                pool.query(text, &[]).await?;
            }
            #[cfg(feature = "mysql")]
            Pooled::Mysql(Quiet(pool)) => pool.query_drop(&**text).await?,
            #[cfg(feature = "redis")]
            Pooled::Redis(Quiet(pool)) => {
                use cenote_redis::redis::{Cmd, Value};
                let mut command = Cmd::new();
                text.split_whitespace().for_each(|word| {
                    command.arg(word);
                });
                let mut lease = pool.acquire().await?;
                command.query_async::<Value>(&mut lease).await?;
            }
        }
        Ok(())
    }

    pub(crate) fn status(&self) -> Status {
        match &self.pool {
            Pooled::Sqlite(db) => db.pool().status(),
            #[cfg(feature = "postgres")]
            Pooled::Postgres(pool) => pool.status(),
            #[cfg(feature = "mysql")]
            Pooled::Mysql(Quiet(pool)) => pool.status(),
            #[cfg(feature = "redis")]
            Pooled::Redis(Quiet(pool)) => pool.status(),
        }
    }

    pub(crate) fn resize(&self, size: usize) -> Result<(), Failure> {
        match &self.pool {
            Pooled::Sqlite(db) => db.pool().resize(size)?,
            #[cfg(feature = "postgres")]
            Pooled::Postgres(pool) => pool.resize(size)?,
            #[cfg(feature = "mysql")]
            Pooled::Mysql(Quiet(pool)) => pool.resize(size)?,
            #[cfg(feature = "redis")]
            Pooled::Redis(Quiet(pool)) => pool.pool().resize(size)?,
        }
        Ok(())
    }

    /// Returns the places of the server for connections. `None`: it has no limit, or this user may
    /// not know it.
    pub(crate) async fn places(&self) -> Option<Places> {
        match &self.pool {
            Pooled::Sqlite(_) => None,
            #[cfg(feature = "postgres")]
            Pooled::Postgres(pool) => {
                let lease = pool.acquire().await.ok()?;
                target::postgres::places(&lease).await.ok()
            }
            #[cfg(feature = "mysql")]
            Pooled::Mysql(Quiet(pool)) => {
                let mut lease = pool.acquire().await.ok()?;
                let ours = pool.status().total as u64;
                target::mysql::places(&mut lease, ours).await.ok()
            }
            #[cfg(feature = "redis")]
            Pooled::Redis(Quiet(pool)) => {
                let mut lease = pool.acquire().await.ok()?;
                let ours = pool.status().total as u64;
                target::redis::places(&mut lease, ours).await.ok()
            }
        }
    }

    pub(crate) async fn close(&self) {
        match &self.pool {
            Pooled::Sqlite(db) => db.close_within(CLOSE_LIMIT).await,
            #[cfg(feature = "postgres")]
            Pooled::Postgres(pool) => pool.close_within(CLOSE_LIMIT).await,
            #[cfg(feature = "mysql")]
            Pooled::Mysql(Quiet(pool)) => pool.close_within(CLOSE_LIMIT).await,
            #[cfg(feature = "redis")]
            Pooled::Redis(Quiet(pool)) => pool.close_within(CLOSE_LIMIT).await,
        };
    }
}

/// Hides the inside of a value that is not `Debug`, or whose `Debug` says too much.
#[cfg(any(feature = "mysql", feature = "redis"))]
struct Quiet<T>(T);

#[cfg(any(feature = "mysql", feature = "redis"))]
impl<T> std::fmt::Debug for Quiet<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a pool")
    }
}

/// Returns nine short reads and a longer one. They need no table, and change nothing.
fn mix(target: &Target) -> Vec<String> {
    let (short, long) = match target {
        Target::Sqlite(_) => (
            "SELECT 1",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) \
             SELECT sum(i) FROM n",
        ),
        #[cfg(feature = "postgres")]
        Target::Postgres(_) => ("select 1", "select sum(i) from generate_series(1, 1000) i"),
        #[cfg(feature = "mysql")]
        Target::Mysql(_) => ("SELECT 1", "SELECT SHA2(REPEAT('cenote', 2000), 256)"),
        #[cfg(feature = "redis")]
        Target::Redis(_) => ("GET cenote:bench", "LOLWUT VERSION 5 8 8 8"),
    };
    let mut texts = vec![short.to_owned(); SHORT];
    texts.push(long.to_owned());
    texts
}

/// Returns whether SQLite needs the right to write for a statement.
async fn writes(db: &Db, sql: String) -> Result<bool, Failure> {
    let reads = db.read(move |conn| conn.prepare(&sql).map(|statement| statement.readonly()));
    Ok(!reads.await?)
}

fn read_all(conn: &rusqlite::Connection, sql: &str) -> rusqlite::Result<()> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}
