//! Faults of servers and networks.
//!
//! Each test makes one fault. Afterwards it asserts that connections can be acquired again in time,
//! that nothing of the fault is left in the pool and on the server, that every pair of rows is
//! whole, and that every acknowledged commit is there.

mod budget;
mod clock;
mod commit;
mod conflicts;
mod connect;
mod kills;
mod load;
#[cfg(feature = "sea-orm")]
mod orm;
mod query;
mod reads;
mod refusals;
mod restarts;
mod secrets;
mod silence;
mod slow;
mod storm;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use cenote_sqlx::{Builder, Lease};
use cenote_testkit::Proxy;
use futures_util::future::join_all;
use sqlx::Error;
use tokio::time::sleep;

use super::world::{self, DB, Db};
use crate::world::as_user;
use clock::{by, eventually};

const MAX_SIZE: usize = 4;

/// The time limits of an acquire, of an open, and of a check, a clean and a close.
const ACQUIRE: Duration = Duration::from_secs(1);
const OPEN: Duration = Duration::from_millis(800);
const STEP: Duration = Duration::from_millis(700);

/// The time limit of a statement while the network is bad.
const PATIENCE: Duration = Duration::from_millis(250);

/// The time of an open and a transaction on a busy machine.
const WORK: Duration = Duration::from_millis(400);

/// The longest back-off of the pool while callers wait and no resource exists.
const LONGEST: Duration = Duration::from_secs(5);

/// A database behind a proxy, a handle around the proxy, and the acknowledged writes.
struct Trial {
    proxy: Proxy,
    db: Db,
    /// Connects without the proxy and without the mark.
    admin: Db,
    /// The schema, by which the server also tells the sessions of this test apart.
    mark: String,
    acknowledged: Mutex<Vec<i32>>,
}

impl Trial {
    /// On the server that all tests share. No other test may use `name`.
    async fn new(name: &str) -> Self {
        Self::with(name, |builder| builder).await
    }

    async fn with(name: &str, customize: impl FnOnce(Builder<DB>) -> Builder<DB>) -> Self {
        Self::on(&world::url(), name, customize).await
    }

    /// On the server with this URL.
    async fn on(url: &str, name: &str, customize: impl FnOnce(Builder<DB>) -> Builder<DB>) -> Self {
        let (_, user) = url.split_once("://").expect("a URL has a scheme");
        let (user, _) = user.split_once('@').expect("the URLs of tests name a user");
        Self::guest(url, name, user, customize).await
    }

    /// On the server with this URL, as another user.
    async fn guest(
        url: &str,
        name: &str,
        user: &str,
        customize: impl FnOnce(Builder<DB>) -> Builder<DB>,
    ) -> Self {
        let mark = format!("cenote_f{}_{name}", place());
        let admin = Db::from_url(url).max_size(1);
        // The handle must survive restarts of the server.
        let admin: Db = admin.check_after_idle(Duration::ZERO).build().unwrap();
        let text = |text: &str| world::sql(&text.replace("{}", &mark));
        for sql in [
            world::DROP,
            "CREATE SCHEMA {}",
            "CREATE TABLE {}.pairs (id INTEGER PRIMARY KEY, amount BIGINT NOT NULL)",
        ] {
            sqlx::raw_sql(text(sql)).execute(&admin).await.unwrap();
        }
        let url = world::marked(&as_user(url, user), &mark);
        let proxy = Proxy::to_url(&url).await.unwrap();
        let builder = Db::from_url(proxy.url(&url))
            .name(name)
            .max_size(MAX_SIZE)
            .acquire_timeout(ACQUIRE)
            .open_timeout(OPEN)
            .check_timeout(STEP)
            .clean_timeout(STEP)
            .close_timeout(STEP)
            // The faults are to be seen.
            .retry_reads(false);
        let db = customize(builder).build().unwrap();
        Self {
            proxy,
            db,
            admin,
            mark,
            acknowledged: Mutex::default(),
        }
    }

    /// Returns the statement with the mark for `{}`.
    fn sql(&self, text: &str) -> sqlx::SqlStr {
        world::sql(&text.replace("{}", &self.mark))
    }

    /// Acquires, and asserts that the acquire keeps its deadline.
    async fn acquire(&self) -> Result<Lease<DB>, Error> {
        by(ACQUIRE, self.db.acquire()).await
    }

    /// Inserts one half of a pair.
    async fn insert(&self, id: i32) -> Result<(), Error> {
        let sql = self.sql("INSERT INTO {}.pairs (id, amount) VALUES (?, ?)");
        let query = sqlx::query(sql).bind(id).bind(i64::from(id));
        query.execute(&self.db).await.map(drop)
    }

    /// Inserts both halves in one transaction, and records the acknowledgement.
    async fn write(&self, id: i32) -> Result<(), Error> {
        let work = async || {
            self.insert(id).await?;
            self.insert(-id).await
        };
        self.db.transaction(work).await?;
        self.acknowledge(id);
        Ok(())
    }

    fn acknowledge(&self, id: i32) {
        self.acknowledged.lock().unwrap().push(id);
    }

    /// Acquires every connection at the same time, and returns them with their ids on the server.
    /// An open may take longer than its limit on a busy machine.
    async fn all(&self) -> Vec<(Lease<DB>, i64)> {
        let mut all = Vec::new();
        for _ in 0..self.size() {
            let mut lease = None;
            eventually("a connection is there", async || {
                lease = self.db.acquire().await.ok();
                lease.is_some()
            })
            .await;
            let mut lease = lease.unwrap();
            let who = sqlx::query_scalar(world::WHO.unwrap());
            let who = who.fetch_one(&mut lease).await.unwrap();
            all.push((lease, who));
        }
        all
    }

    /// Returns `max_size` of the pool.
    fn size(&self) -> usize {
        self.db.pool().status().max_size
    }

    /// Returns the number of sessions that the server shows.
    async fn sessions(&self) -> i64 {
        self.count(world::SESSIONS).await
    }

    /// Returns what the server counts for this mark.
    async fn count(&self, text: &str) -> i64 {
        let count = sqlx::query_scalar(self.sql(text));
        count.fetch_one(&self.admin).await.unwrap()
    }

    /// Writes until a write succeeds, within this limit plus the time of an open and a write.
    async fn first_success(&self, id: i32, within: Duration) {
        let tries = async {
            while self.write(id).await.is_err() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        by(within + WORK, tries).await;
    }

    /// Asserts that nothing of the fault is left. `id` is that of a new pair.
    async fn assert_recovered(&self, id: i32, within: Duration) {
        self.first_success(id, within).await;
        self.assert_nothing_left().await;
        self.assert_rows().await;
    }

    /// Asserts that the pool is idle, that all connections can be acquired at once, and that the
    /// server has the same number of sessions.
    async fn assert_nothing_left(&self) {
        let pool = self.db.pool();
        eventually("the pool is idle", async || {
            let seen = pool.status();
            let busy = seen.in_use + seen.opening + seen.cleaning + seen.checking + seen.closing;
            busy + seen.waiting == 0
        })
        .await;
        let all = self.all().await;
        assert_eq!(pool.status().in_use, self.size());
        assert!(
            matches!(pool.try_acquire(), Ok(None)),
            "more connections than `max_size`"
        );
        eventually("the server sees as many", async || {
            self.sessions().await == self.size() as i64
        })
        .await;
        drop(all);
        eventually("all connections are back", async || {
            pool.status().idle == self.size()
        })
        .await;
    }

    /// Asserts that every pair is whole and that every acknowledged pair is there.
    async fn assert_rows(&self) {
        let sql = self.sql("SELECT id, amount FROM {}.pairs");
        let rows: Vec<(i32, i64)> = sqlx::query_as(sql).fetch_all(&self.admin).await.unwrap();
        let rows: BTreeMap<i32, i64> = rows.into_iter().collect();
        for (id, amount) in &rows {
            assert_eq!(i64::from(*id), *amount, "a row is not as it was written");
            assert!(
                rows.contains_key(&-id),
                "{id} is there, its other half is not"
            );
        }
        for id in self.acknowledged.lock().unwrap().iter() {
            assert!(rows.contains_key(id), "{id} was acknowledged, and is gone");
        }
    }

    /// Returns whether this row is there.
    async fn has(&self, id: i32) -> bool {
        let sql = self.sql("SELECT count(*) FROM {}.pairs WHERE id = ?");
        let found = sqlx::query_scalar(sql).bind(id).fetch_one(&self.admin);
        let found: i64 = found.await.unwrap();
        found == 1
    }
}

/// Checks all cases at the same time, because they wait most of the time.
async fn each<C>(cases: impl IntoIterator<Item = C>, check: impl AsyncFn(C)) {
    join_all(cases.into_iter().map(|case| check(case))).await;
}

/// Returns the longest back-off after the server was down for this long. Each back-off is at most
/// twice as long as all before it together, plus the first one.
fn back_off(away: Duration) -> Duration {
    (2 * away + Duration::from_millis(50)).min(LONGEST)
}

/// A part of schema names. Two copies of this repository have different ones, so that both can be
/// tested on one server at the same time.
fn place() -> u16 {
    let place = env!("CARGO_MANIFEST_DIR").bytes();
    place.fold(7, |number, byte| {
        number.wrapping_mul(31).wrapping_add(byte.into())
    })
}
