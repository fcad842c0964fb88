//! What must hold on every server that can be far away, slow, full or dead.
//!
//! Each test makes one fault, and afterwards asks the same four questions: does everybody get a connection again, and how soon; is nothing
//! left of the fault, here and on the server; is every pair of rows whole; is every commit there that was acknowledged?

mod clock;
mod commit;
mod conflicts;
mod connect;
mod kills;
mod load;
mod query;
mod refusals;
mod restarts;
mod secrets;
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

/// Of an acquire, an open, a check, a clean and a close.
const ACQUIRE: Duration = Duration::from_secs(1);
const OPEN: Duration = Duration::from_millis(800);
const STEP: Duration = Duration::from_millis(700);

/// What a statement is given by its user while the network is bad.
const PATIENCE: Duration = Duration::from_millis(250);

/// What an open and a transaction take on a loaded machine.
const WORK: Duration = Duration::from_millis(400);

/// The longest back-off of the pool while somebody waits and nobody holds anything.
const LONGEST: Duration = Duration::from_secs(5);

/// A database behind a proxy, a way around the proxy, and what was acknowledged.
struct Trial {
    proxy: Proxy,
    db: Db,
    /// Not through the proxy, and not among the sessions of the mark.
    admin: Db,
    mark: String,
    acknowledged: Mutex<Vec<i32>>,
}

impl Trial {
    /// On the server that all tests share. `name` is of one test only.
    async fn new(name: &str) -> Self {
        Self::with(name, |builder| builder).await
    }

    async fn with(name: &str, dress: impl FnOnce(Builder<DB>) -> Builder<DB>) -> Self {
        Self::on(&world::url(), name, dress).await
    }

    /// On the server with this URL.
    async fn on(url: &str, name: &str, dress: impl FnOnce(Builder<DB>) -> Builder<DB>) -> Self {
        let (_, user) = url.split_once("://").expect("a URL has a scheme");
        let (user, _) = user.split_once('@').expect("the URLs of tests name a user");
        Self::guest(url, name, user, dress).await
    }

    /// On the server with this URL, but for another user.
    async fn guest(
        url: &str,
        name: &str,
        user: &str,
        dress: impl FnOnce(Builder<DB>) -> Builder<DB>,
    ) -> Self {
        let mark = format!("cenote_f{}_{name}", place());
        let admin = Db::from_url(url).max_size(1);
        // It outlives restarts of its server.
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
            .name(name.to_owned())
            .max_size(MAX_SIZE)
            .acquire_timeout(ACQUIRE)
            .open_timeout(OPEN)
            .check_timeout(STEP)
            .clean_timeout(STEP)
            .close_timeout(STEP);
        let db = dress(builder).build().unwrap();
        Self {
            proxy,
            db,
            admin,
            mark,
            acknowledged: Mutex::default(),
        }
    }

    /// The statement, with the mark for `{}`.
    fn sql(&self, text: &str) -> sqlx::SqlStr {
        world::sql(&text.replace("{}", &self.mark))
    }

    /// An acquire that keeps its deadline, whatever comes of it.
    async fn acquire(&self) -> Result<Lease<DB>, Error> {
        by(ACQUIRE, self.db.acquire()).await
    }

    /// One half of a pair.
    async fn insert(&self, id: i32) -> Result<(), Error> {
        let sql = self.sql("INSERT INTO {}.pairs (id, amount) VALUES (?, ?)");
        let query = sqlx::query(sql).bind(id).bind(i64::from(id));
        query.execute(&self.db).await.map(drop)
    }

    /// Both halves, in one transaction. What is acknowledged is remembered.
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

    /// Every connection at the same time, each of them good, and who runs them.
    async fn all(&self) -> Vec<(Lease<DB>, i64)> {
        let mut all = Vec::new();
        for _ in 0..self.size() {
            let mut lease = self.db.acquire().await.unwrap();
            let who = sqlx::query_scalar(world::WHO.unwrap());
            let who = who.fetch_one(&mut lease).await.unwrap();
            all.push((lease, who));
        }
        all
    }

    /// How many connections there can be: `MAX_SIZE`, unless the test says otherwise.
    fn size(&self) -> usize {
        self.db.pool().status().max_size
    }

    /// How many sessions the server shows.
    async fn sessions(&self) -> i64 {
        self.count(world::SESSIONS).await
    }

    /// What the server counts for this mark.
    async fn count(&self, text: &str) -> i64 {
        let count = sqlx::query_scalar(self.sql(text));
        count.fetch_one(&self.admin).await.unwrap()
    }

    /// Writes until it can be done, and fails if that takes longer than it may, beside what opening and writing take.
    async fn first_success(&self, id: i32, within: Duration) {
        let tries = async {
            while self.write(id).await.is_err() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        by(within + WORK, tries).await;
    }

    /// The fault is over: the four questions. `id` is of a pair that nobody wrote yet.
    async fn assert_recovered(&self, id: i32, within: Duration) {
        self.first_success(id, within).await;
        self.assert_nothing_left().await;
        self.assert_rows().await;
    }

    /// Nothing is out, nobody waits, everything can be had at once; and the server sees what the pool sees.
    async fn assert_nothing_left(&self) {
        let pool = self.db.pool();
        eventually("the pool is at rest", async || {
            let seen = pool.status();
            let busy = seen.in_use + seen.opening + seen.cleaning + seen.checking + seen.closing;
            busy + seen.waiting == 0
        })
        .await;
        let all = self.all().await;
        assert_eq!(pool.status().in_use, self.size());
        assert!(
            matches!(pool.try_acquire(), Ok(None)),
            "that is one too many"
        );
        eventually("the server sees as many", async || {
            self.sessions().await == self.size() as i64
        })
        .await;
        drop(all);
        eventually("all come home", async || pool.status().idle == self.size()).await;
    }

    /// Every pair is whole, and whatever was acknowledged is there.
    async fn assert_rows(&self) {
        let sql = self.sql("SELECT id, amount FROM {}.pairs");
        let rows: Vec<(i32, i64)> = sqlx::query_as(sql).fetch_all(&self.admin).await.unwrap();
        let rows: BTreeMap<i32, i64> = rows.into_iter().collect();
        for (id, amount) in &rows {
            assert_eq!(i64::from(*id), *amount, "a row is not as it was written");
            assert!(rows.contains_key(&-id), "{id} is there, its half is not");
        }
        for id in self.acknowledged.lock().unwrap().iter() {
            assert!(rows.contains_key(id), "{id} was acknowledged, and is gone");
        }
    }

    /// Is this pair there?
    async fn has(&self, id: i32) -> bool {
        let sql = self.sql("SELECT count(*) FROM {}.pairs WHERE id = ?");
        let found = sqlx::query_scalar(sql).bind(id).fetch_one(&self.admin);
        let found: i64 = found.await.unwrap();
        found == 1
    }
}

/// Checks all cases at the same time, for most of what they do is wait.
async fn each<C>(cases: impl IntoIterator<Item = C>, check: impl AsyncFn(C)) {
    join_all(cases.into_iter().map(|case| check(case))).await;
}

/// The longest back-off after the server was away for this long: each is at most twice as long as all before it together, and one more.
fn back_off(away: Duration) -> Duration {
    (2 * away + Duration::from_millis(50)).min(LONGEST)
}

/// So that two copies of this repository can be tested at the same time on one server.
fn place() -> u16 {
    let place = env!("CARGO_MANIFEST_DIR").bytes();
    place.fold(7, |number, byte| {
        number.wrapping_mul(31).wrapping_add(byte.into())
    })
}
