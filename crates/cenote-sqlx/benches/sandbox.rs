//! `cargo bench -p cenote-sqlx --features macros --bench sandbox`: 1,000 tests of three statements
//! each under `#[cenote_sqlx::test]` and under `#[sqlx::test]`, 8 at a time, on PostgreSQL.
//!
//! Both attributes are called as their expansions call them, and build the same table by a
//! migration. Each test asserts that it finds its own row only. The server is the one of
//! `DATABASE_URL`, which sqlx needs too.

#![expect(clippy::unwrap_used, reason = "a failure ends the measurement")]
#![expect(
    clippy::disallowed_methods,
    reason = "the ban guards the pool; this measures from outside"
)]

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cenote_sqlx::__test::{Plan, run};
use cenote_sqlx::Db;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{Connection, Postgres, SqlSafeStr};
use sqlx_core::testing::{TestArgs, TestFn};

const AT_ONCE: usize = 8;

const ADD: &str = "INSERT INTO orders (item) VALUES ($1)";
const READ: &str = "SELECT item FROM orders";
const CHANGE: &str = "UPDATE orders SET item = 'a table'";

fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    let tests = numbers.next_back().unwrap_or(1000);
    let url = std::env::var("DATABASE_URL").expect("`DATABASE_URL` names a PostgreSQL server");

    let ours = measure(&url, tests, |_| run(plan(), in_sandbox));
    println!("#[cenote_sqlx::test]: {ours}");
    let theirs = measure(&url, tests, |number| {
        let path: &'static str = format!("bench::number_{number}").leak();
        let mut args = TestArgs::new(path);
        args.migrator(Box::leak(Box::new(migrator())));
        let test: fn(PgPool) -> _ = with_pool;
        test.run_test(args);
    });
    println!("#[sqlx::test]:        {theirs}");
    println!(
        "{:.0} times faster",
        theirs.time.as_secs_f64() / ours.time.as_secs_f64()
    );
}

async fn in_sandbox(db: Db<Postgres>) {
    sqlx::query(ADD).bind("a chair").execute(&db).await.unwrap();
    assert_eq!(sqlx::query(READ).fetch_all(&db).await.unwrap().len(), 1);
    sqlx::query(CHANGE).execute(&db).await.unwrap();
}

async fn with_pool(db: PgPool) {
    sqlx::query(ADD).bind("a chair").execute(&db).await.unwrap();
    assert_eq!(sqlx::query(READ).fetch_all(&db).await.unwrap().len(), 1);
    sqlx::query(CHANGE).execute(&db).await.unwrap();
}

fn plan() -> Plan {
    Plan {
        url: None,
        migrator: Some(migrator()),
        fixtures: &[],
        isolated: false,
    }
}

fn migrator() -> Migrator {
    let sql = "CREATE TABLE orders (id BIGSERIAL PRIMARY KEY, item TEXT NOT NULL)";
    let kind = MigrationType::Simple;
    let migration = Migration::new(1, "orders".into(), kind, sql.into_sql_str(), false);
    Migrator::with_migrations(vec![migration])
}

struct Measured {
    tests: usize,
    time: Duration,
    /// The most sessions at a time, by the server's own count.
    sessions: i64,
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let each = self.time / u32::try_from(self.tests).unwrap_or(u32::MAX);
        write!(
            f,
            "{} tests in {:.2?}, {each:.2?} each, at most {} sessions",
            self.tests, self.time, self.sessions
        )
    }
}

fn measure(url: &str, tests: usize, test: impl Fn(usize) + Sync) -> Measured {
    let (next, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let sessions = AtomicI64::new(0);
    let mut time = Duration::ZERO;
    thread::scope(|scope| {
        scope.spawn(|| count_sessions(url, &over, &sessions));
        let began = Instant::now();
        thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    while let Some(number) = Some(next.fetch_add(1, Ordering::Relaxed))
                        && number < tests
                    {
                        test(number);
                    }
                });
            }
        });
        time = began.elapsed();
        over.store(true, Ordering::Relaxed);
    });
    Measured {
        tests,
        time,
        sessions: sessions.into_inner(),
    }
}

/// Asks the server every few milliseconds how many other sessions there are.
fn count_sessions(url: &str, over: &AtomicBool, most: &AtomicI64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let mut connection = PgConnection::connect(url).await.unwrap();
        let sql = "SELECT count(*) FROM pg_stat_activity \
                   WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        while !over.load(Ordering::Relaxed) {
            let count = sqlx::query_scalar(sql).fetch_one(&mut connection).await;
            most.fetch_max(count.unwrap(), Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}
