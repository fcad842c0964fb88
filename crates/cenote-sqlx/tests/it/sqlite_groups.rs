//! Writes on SQLite that wait together are committed together, and each is told the truth.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use cenote_sqlx::{Db, Transaction};
use sqlx::{Error, Sqlite};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::world::sqlite::{self as world, number, run};

const LONG: Duration = Duration::from_secs(30);

/// Writes that wait behind a transaction, in this order.
struct Waiting {
    db: Db<Sqlite>,
    writing: Option<Transaction<'static, Sqlite>>,
    writes: Vec<JoinHandle<Result<u64, Error>>>,
    _home: world::Home,
}

impl Waiting {
    async fn new(schema: &'static str, writes: impl IntoIterator<Item = &'static str>) -> Self {
        let (builder, home) = world::builder();
        let db = builder.acquire_timeout(LONG).build().unwrap();
        run(&db, schema).await;
        let mut waiting = Self {
            writing: Some(db.begin().await.unwrap()),
            db,
            writes: Vec::new(),
            _home: home,
        };
        waiting.add(writes).await;
        waiting
    }

    async fn add(&mut self, writes: impl IntoIterator<Item = &'static str>) {
        for sql in writes {
            let (db, before) = (self.db.clone(), self.db.pool().status().waiting);
            let write = async move {
                let written = sqlx::query(sql).execute(&db).await?;
                Ok(written.rows_affected())
            };
            self.writes.push(tokio::spawn(write));
            while self.db.pool().status().waiting == before {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Lets them go on. Returns how many leases of the writer they needed, and their results.
    async fn go(&mut self) -> (u64, Vec<Result<u64, Error>>) {
        let writer = self.db.pool().annex().unwrap().clone();
        let before = writer.status().acquired;
        let writing = self.writing.take().unwrap();
        writing.commit().await.unwrap();
        let mut results = Vec::new();
        for write in self.writes.drain(..) {
            results.push(timeout(LONG, write).await.unwrap().unwrap());
        }
        (writer.status().acquired - before, results)
    }
}

const TABLE: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY)";

#[tokio::test]
async fn writes_that_wait_together_are_committed_together() {
    let writes = ["INSERT INTO t DEFAULT VALUES"; 30];
    let mut waiting = Waiting::new(TABLE, writes).await;
    let db = waiting.db.clone();

    let (leases, results) = waiting.go().await;

    // A group has at least two, however slow the machine is.
    assert!(leases <= 15, "{leases} leases for 30 writes");
    assert!(results.iter().all(|result| matches!(result, Ok(1))));
    assert_eq!(number(&db, "SELECT count(*) FROM t").await, 30);
    assert_eq!(db.pool().status().in_use, 0);
}

#[tokio::test]
async fn a_write_that_fails_in_a_group_fails_alone() {
    let writes = [
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES (2), (3), (1)",
        "INSERT INTO t VALUES (4)",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES (5)",
    ];
    let mut waiting = Waiting::new(TABLE, writes).await;
    let db = waiting.db.clone();

    let (_, results) = waiting.go().await;

    let ok: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(ok, [true, false, true, false, true]);
    for error in results.into_iter().filter_map(Result::err) {
        assert!(error.as_database_error().unwrap().is_unique_violation());
    }
    let ids = sqlx::query_scalar::<_, i64>("SELECT id FROM t ORDER BY id");
    assert_eq!(ids.fetch_all(&db).await.unwrap(), [1, 4, 5]);
}

#[tokio::test]
async fn a_write_that_rolls_everything_back_harms_no_other() {
    let schema = "CREATE TABLE t (id INTEGER PRIMARY KEY);
         CREATE TRIGGER stop BEFORE INSERT ON t WHEN new.id = 13
         BEGIN SELECT RAISE(ROLLBACK, 'not this one'); END;
         INSERT INTO t VALUES (5)";
    let writes = [
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES (2)",
        "INSERT INTO t VALUES (13)",
        "INSERT INTO t VALUES (3)",
        "INSERT OR ROLLBACK INTO t VALUES (5)",
        "INSERT INTO t VALUES (4)",
    ];
    let mut waiting = Waiting::new(schema, writes).await;
    let db = waiting.db.clone();

    let (_, results) = waiting.go().await;

    let ok: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(ok, [true, true, false, true, false, true], "{results:?}");
    assert!(
        results[2]
            .as_ref()
            .unwrap_err()
            .to_string()
            .contains("not this one")
    );
    let ids = sqlx::query_scalar::<_, i64>("SELECT id FROM t ORDER BY id");
    assert_eq!(ids.fetch_all(&db).await.unwrap(), [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn a_constraint_that_only_the_commit_checks_fails_its_own_write() {
    let schema = "CREATE TABLE t (id INTEGER PRIMARY KEY);
         CREATE TABLE child (id INTEGER REFERENCES t (id) DEFERRABLE INITIALLY DEFERRED)";
    let writes = [
        "INSERT INTO t VALUES (1)",
        "INSERT INTO child VALUES (99)",
        "INSERT INTO t VALUES (2)",
    ];
    let mut waiting = Waiting::new(schema, writes).await;
    let db = waiting.db.clone();

    let (_, results) = waiting.go().await;

    let ok: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(ok, [true, false, true], "{results:?}");
    assert_eq!(number(&db, "SELECT count(*) FROM t").await, 2);
    assert_eq!(number(&db, "SELECT count(*) FROM child").await, 0);
}

#[tokio::test]
async fn callers_that_give_up_take_their_writes_with_them_and_no_other() {
    let writes = [
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES (2)",
        "INSERT INTO t VALUES (3)",
        "INSERT INTO t VALUES (4)",
    ];
    let mut waiting = Waiting::new(TABLE, writes).await;
    let db = waiting.db.clone();
    // The first would lead the group.
    for dropped in [waiting.writes.remove(0), waiting.writes.remove(1)] {
        dropped.abort();
        assert!(dropped.await.unwrap_err().is_cancelled());
    }

    let (_, results) = waiting.go().await;

    assert!(results.iter().all(Result::is_ok));
    let ids = sqlx::query_scalar::<_, i64>("SELECT id FROM t ORDER BY id");
    assert_eq!(ids.fetch_all(&db).await.unwrap(), [2, 4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_dropped_at_any_moment_harms_no_other() {
    let (builder, _home) = world::builder();
    let db = builder.acquire_timeout(LONG).build().unwrap();
    run(
        &db,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, patient INTEGER)",
    )
    .await;
    let write = |id: i64, limit: Duration| {
        let db = db.clone();
        tokio::spawn(async move {
            let insert = sqlx::query("INSERT INTO t VALUES (?, ?)").bind(id);
            let insert = insert.bind(i64::from(limit == LONG)).execute(&db);
            timeout(limit, insert).await
        })
    };

    let mut writes = Vec::new();
    for id in 0..1000 {
        let limit = match id % 2 {
            0 => Duration::from_micros(fastrand::u64(0..5_000)),
            _ => LONG,
        };
        writes.push((limit, write(id, limit)));
        if id % 50 == 0 {
            tokio::task::yield_now().await;
        }
    }
    let (mut told, mut cut) = (0, 0);
    for (limit, write) in writes {
        match write.await.unwrap() {
            Ok(written) => told += written.unwrap().rows_affected(),
            Err(_) if limit == LONG => panic!("a patient caller was not told"),
            Err(_) => cut += 1,
        }
    }

    let rows = number(&db, "SELECT count(*) FROM t").await;
    assert!(
        (told..=told + cut).contains(&(rows as u64)),
        "{told} {cut} {rows}"
    );
    assert_eq!(number(&db, "SELECT sum(patient) FROM t").await, 500);
    assert!(cut > 0);
}

#[tokio::test]
async fn a_write_in_a_transaction_or_a_changed_session_is_in_no_group() {
    let mut waiting = Waiting::new(TABLE, ["INSERT INTO t VALUES (1)"; 0]).await;
    let db = waiting.db.clone();
    drop(waiting.writing.take());

    let undone = db.transaction(async || {
        sqlx::query("INSERT INTO t VALUES (1)").execute(&db).await?;
        Err::<(), _>(Error::RowNotFound)
    });
    assert!(undone.await.is_err());
    cenote::scope(async {
        run(&db, "CREATE TEMP TABLE mine (id INTEGER)").await;
        let written = sqlx::query("INSERT INTO mine VALUES (1)").execute(&db);
        assert_eq!(written.await.unwrap().rows_affected(), 1);
    })
    .await;

    assert_eq!(number(&db, "SELECT count(*) FROM t").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runtime_that_ends_leaves_no_caller_of_another_waiting() {
    let mut waiting = Waiting::new(TABLE, ["INSERT INTO t VALUES (1)"]).await;
    let db = waiting.db.clone();
    let (tell, told) = tokio::sync::oneshot::channel();
    let other = std::thread::spawn({
        let db = db.clone();
        move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().unwrap();
            runtime.block_on(async {
                let write = sqlx::query("INSERT INTO t VALUES (2)");
                // The runtime ends with the write in the queue, in a group, or done.
                let _ = timeout(Duration::from_millis(100), write.execute(&db)).await;
            });
            drop(runtime);
            tell.send(()).unwrap();
        }
    });
    while db.pool().status().waiting < 2 {
        tokio::task::yield_now().await;
    }

    let (_, results) = waiting.go().await;

    assert!(results.iter().all(Result::is_ok), "{results:?}");
    told.await.unwrap();
    other.join().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_runtime_ends_leaves_its_group_to_the_others() {
    let mut waiting = Waiting::new(TABLE, []).await;
    let db = waiting.db.clone();
    let writer = db.pool().annex().unwrap().clone();
    let before = writer.status().acquired;
    let leader = std::thread::spawn({
        let (db, writer) = (db.clone(), writer.clone());
        move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().unwrap();
            runtime.block_on(async {
                let mut write = pin!(sqlx::query("INSERT INTO t VALUES (1)").execute(&db));
                // The task of the group cannot run before this future has ended.
                poll_fn(|context| {
                    assert!(write.as_mut().poll(context).is_pending());
                    match writer.status().acquired > before {
                        true => Poll::Ready(()),
                        false => Poll::Pending,
                    }
                })
                .await;
            });
        }
    });
    while db.pool().status().waiting < 1 {
        tokio::task::yield_now().await;
    }
    waiting
        .add(["INSERT INTO t VALUES (2)", "INSERT INTO t VALUES (3)"])
        .await;

    let (_, results) = waiting.go().await;

    leader.join().unwrap();
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    let ids = sqlx::query_scalar::<_, i64>("SELECT id FROM t ORDER BY id");
    assert_eq!(ids.fetch_all(&db).await.unwrap(), [2, 3]);
}
