//! Servers that die without a word while a statement waits for them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cenote_sqlx::{Builder, Class};
use cenote_testkit::Way;
use futures_util::{StreamExt, TryStreamExt};
use tokio::time::timeout;

use super::clock::eventually;
use super::kills::kill;
use super::restarts::blocking;
use super::{DB, Db, Trial, each, world};

const SILENT: Duration = Duration::from_millis(300);

/// Longer than any verdict takes.
const AT_MOST: Duration = Duration::from_secs(20);

const GONE: &str = "does not know this session";
const IDLE: &str = "the server waits for this client";
const NO_ANSWER: &str = "the server does not answer";

fn watched(builder: Builder<DB>) -> Builder<DB> {
    builder.max_size(1).silent_after(SILENT)
}

/// What waits for the server when it dies.
#[derive(Clone, Copy, Debug)]
enum Wait {
    Handle,
    Lease,
    Ambient,
    Passed,
    Stream,
    Begin,
    Commit,
    Prepare,
}

const ALL: [Wait; 8] = [
    Wait::Handle,
    Wait::Lease,
    Wait::Ambient,
    Wait::Passed,
    Wait::Stream,
    Wait::Begin,
    Wait::Commit,
    Wait::Prepare,
];

/// Warms one connection up, calls `die` when the next operation is about to begin, and returns the
/// error of that operation.
async fn error_of(trial: &Trial, wait: Wait, sql: &str, die: impl AsyncFn()) -> sqlx::Error {
    let db = &trial.db;
    let sql = || world::sql(sql);
    let died = async {
        drop(trial.all().await);
        match wait {
            Wait::Handle => {
                die().await;
                sqlx::raw_sql(sql()).execute(db).await.map(drop)
            }
            Wait::Lease => {
                let mut lease = db.acquire().await?;
                die().await;
                sqlx::raw_sql(sql()).fetch_all(&mut lease).await.map(drop)
            }
            Wait::Ambient => {
                let work = async || {
                    die().await;
                    let inside = sqlx::raw_sql(sql()).fetch_optional(db).await;
                    let error = inside.unwrap_err();
                    let next = sqlx::query("SELECT 1").execute(db).await;
                    assert!(next.is_err(), "the transaction went on elsewhere");
                    Err::<(), _>(error)
                };
                db.transaction(work).await
            }
            Wait::Passed => {
                let mut transaction = db.begin().await?;
                die().await;
                let inside = sqlx::raw_sql(sql()).execute(&mut transaction).await;
                inside.map(drop)
            }
            Wait::Stream => {
                let mut rows = sqlx::query(world::MANY).fetch(db);
                rows.next().await.unwrap()?;
                die().await;
                rows.try_for_each(async |_| Ok(())).await
            }
            Wait::Begin => {
                die().await;
                db.begin().await.map(drop)
            }
            Wait::Commit => {
                let transaction = db.begin().await?;
                die().await;
                transaction.commit().await
            }
            Wait::Prepare => {
                let mut lease = db.acquire().await?;
                die().await;
                let prepared = sqlx::Executor::prepare(&mut lease, sql());
                prepared.await.map(drop)
            }
        }
    };
    let died = timeout(AT_MOST, died).await;
    died.unwrap_or_else(|_| panic!("{wait:?} hangs"))
        .unwrap_err()
}

fn name(kind: &str, wait: Wait) -> String {
    format!("{kind}_{wait:?}").to_lowercase()
}

fn assert_says(error: &sqlx::Error, what: &str, wait: Wait) {
    assert_eq!(Db::classify(error), Class::Broken, "{wait:?}: {error}");
    assert!(error.to_string().contains(what), "{wait:?}: {error}");
}

#[tokio::test]
async fn a_statement_on_a_forgotten_connection_fails_with_the_reason() {
    each(ALL, async |wait| {
        let trial = Trial::with(&name("lost", wait), watched).await;
        let die = async || trial.proxy.forget(Way::Both);

        let error = error_of(&trial, wait, "SELECT 1", die).await;

        assert_says(&error, IDLE, wait);
        // The server still has the session.
        trial.proxy.reset();
        trial.assert_recovered(1, Duration::ZERO).await;
    })
    .await;
}

/// More rows than the buffers between server and client hold.
const HUGE: &str = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 300) \
                    SELECT repeat('x', 100000) FROM n";

#[tokio::test]
async fn a_stream_whose_server_cannot_send_any_more_fails_with_the_reason() {
    let trial = Trial::with("choked", watched).await;
    drop(trial.all().await);
    let mut rows = sqlx::query(HUGE).fetch(&trial.db);
    rows.next().await.unwrap().unwrap();
    trial.proxy.freeze(Way::ToClient);

    let rest = rows.try_for_each(async |_| Ok(()));
    let error = timeout(AT_MOST, rest).await.expect("it ends").unwrap_err();

    assert_says(&error, IDLE, Wait::Stream);
    trial.proxy.reset();
    trial.assert_recovered(1, Duration::ZERO).await;
}

#[tokio::test]
async fn a_statement_whose_server_does_not_answer_at_all_fails_with_the_reason() {
    each(ALL, async |wait| {
        let trial = Trial::with(&name("mute", wait), watched).await;
        let die = async || {
            trial.proxy.forget(Way::Both);
            trial.proxy.black_hole();
        };

        let error = error_of(&trial, wait, "SELECT 1", die).await;

        assert_says(&error, NO_ANSWER, wait);
        trial.proxy.heal().unwrap();
        trial.proxy.reset();
        trial.assert_recovered(1, super::LONGEST).await;
    })
    .await;
}

#[tokio::test]
async fn a_statement_whose_server_is_not_there_any_more_fails_with_the_reason() {
    let trial = Trial::with("absent", watched).await;
    let die = async || {
        trial.proxy.forget(Way::Both);
        trial.proxy.refuse().await;
    };

    let error = error_of(&trial, Wait::Handle, "SELECT 1", die).await;

    assert_says(&error, NO_ANSWER, Wait::Handle);
    trial.proxy.heal().unwrap();
    trial.proxy.reset();
    trial.assert_recovered(1, super::LONGEST).await;
}

#[tokio::test]
async fn a_statement_whose_session_is_gone_fails_with_the_reason() {
    let waits = [Wait::Handle, Wait::Lease, Wait::Ambient, Wait::Passed];
    each(waits, async |wait| {
        let trial = Trial::with(&name("gone", wait), watched).await;
        let victim = trial.all().await[0].1;
        let die = async || trial.proxy.forget(Way::ToClient);
        let kills = async {
            eventually("the statement runs", async || {
                trial.count(world::BUSY).await == 1
            })
            .await;
            kill(&trial, &[victim]).await;
        };

        let slow = world::slow(60);
        let (error, ()) = tokio::join!(error_of(&trial, wait, &slow, die), kills);

        assert_says(&error, GONE, wait);
        trial.assert_recovered(1, Duration::ZERO).await;
    })
    .await;
}

#[tokio::test]
async fn a_statement_whose_server_was_restarted_fails_with_the_reason() {
    let server = world::start(&[]);
    let trial = Trial::on(server.url(), "restarted_silently", watched).await;
    drop(trial.all().await);
    trial.proxy.forget(Way::Both);
    let server = blocking(server, |server| server.stop().unwrap()).await;
    let _server = blocking(server, |server| server.restart().unwrap()).await;

    let waits = sqlx::query("SELECT 1").execute(&trial.db);
    let error = timeout(AT_MOST, waits).await.expect("it ends").unwrap_err();

    assert_says(&error, GONE, Wait::Handle);
    trial.assert_recovered(1, super::LONGEST).await;
}

#[tokio::test]
async fn a_read_on_a_forgotten_connection_is_tried_on_another_one() {
    let trial = Trial::with("lost_read", |builder| watched(builder).retry_reads(true)).await;
    drop(trial.all().await);
    trial.proxy.forget(Way::Both);

    let read = sqlx::query("SELECT 1").execute(&trial.db);
    timeout(AT_MOST, read).await.expect("it ends").unwrap();

    assert_eq!(trial.db.pool().status().opened, 2);
    trial.proxy.reset();
}

#[tokio::test]
async fn without_a_watchdog_a_statement_on_a_forgotten_connection_waits() {
    let trial = Trial::with("off", |builder| watched(builder).silent_after(None)).await;
    drop(trial.all().await);
    trial.proxy.forget(Way::Both);
    let accepted = trial.proxy.counts().accepted;

    let waits = sqlx::query("SELECT 1").execute(&trial.db);

    assert!(timeout(SILENT * 5, waits).await.is_err());
    let canceller = u64::from(world::RESETS);
    assert!(trial.proxy.counts().accepted <= accepted + 1 + canceller);
    trial.proxy.reset();
    trial.assert_recovered(1, Duration::ZERO).await;
}

#[tokio::test]
async fn a_silent_statement_can_be_dropped_at_any_time() {
    let trial = Trial::with("given_up", watched).await;
    for (id, part) in (1..).zip([1, 3, 5, 7, 9]) {
        drop(trial.all().await);
        trial.proxy.forget(Way::Both);

        let waits = sqlx::query("SELECT 1").execute(&trial.db);
        let dropped = timeout(SILENT * part / 4, waits).await;

        assert!(dropped.is_err() || part > 7);
        trial.proxy.reset();
        trial.assert_recovered(id, Duration::ZERO).await;
    }
}

#[test]
fn a_runtime_without_timers_has_no_watchdog() {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let proxy = tokio::runtime::Runtime::new().unwrap();
    let trial = proxy.block_on(Trial::with("timeless", watched));
    std::panic::set_hook(Box::new(|_| {
        PANICS.fetch_add(1, Ordering::Relaxed);
    }));

    let mut timeless = tokio::runtime::Builder::new_current_thread();
    timeless.enable_io().build().unwrap().block_on(async {
        for _ in 0..3 {
            let slow = world::sql(&world::slow(1));
            sqlx::raw_sql(slow).execute(&trial.db).await.unwrap();
        }
    });

    let _ = std::panic::take_hook();
    let panics = PANICS.load(Ordering::Relaxed);
    assert!(
        panics <= 2,
        "{panics} panics: one for the pool and one for the watchdog"
    );
}
