//! Statements that are slow and healthy: the watchdog leaves them alone.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use cenote_testkit::clock::timed;
use futures_util::future::{join_all, poll_fn};
use futures_util::{StreamExt, TryStreamExt};

use super::clock::eventually;
use super::{Trial, world};

const STATEMENTS: usize = 10_000;
const SIZE: usize = 80;

/// Longer than a busy machine keeps a server from its work.
const SILENT: Duration = Duration::from_millis(50);

/// Returns a statement that runs for three times [`SILENT`].
fn nap() -> sqlx::SqlStr {
    world::sql(&world::slow(1).replace("(1)", "(0.15)"))
}

/// Returns how many connections were accepted that are not those of the pool.
fn looks(trial: &Trial) -> u64 {
    let opened = trial.db.pool().status().opened;
    trial.proxy.counts().accepted - opened
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_slow_statements_cause_no_false_alarm() {
    let server = world::start(&[]);
    let customize = |builder: cenote_sqlx::Builder<_>| {
        let builder = builder.max_size(SIZE).acquire_timeout(None);
        let builder = builder.open_timeout(Duration::from_secs(10));
        builder.silent_after(SILENT)
    };
    let trial = Arc::new(Trial::on(server.url(), "naps", customize).await);
    drop(trial.all().await);

    let workers = (0..SIZE).map(|nth| {
        let trial = Arc::clone(&trial);
        tokio::spawn(async move {
            let db = &trial.db;
            for _ in 0..STATEMENTS / SIZE {
                match nth % 4 {
                    0 => sqlx::query(nap()).execute(db).await.map(drop)?,
                    1 => sqlx::query(nap()).fetch_all(db).await.map(drop)?,
                    2 => {
                        sqlx::query(nap())
                            .fetch(db)
                            .try_for_each(async |_| Ok(()))
                            .await?
                    }
                    _ => {
                        let work = async || sqlx::raw_sql(nap()).execute(db).await;
                        db.transaction(work).await.map(drop)?;
                    }
                }
            }
            Ok::<_, sqlx::Error>(())
        })
    });
    let (ended, took) = timed(join_all(workers)).await;

    for end in ended {
        end.unwrap().unwrap();
    }
    let looks = looks(&trial);
    println!("{STATEMENTS} slow statements in {took:?}, {looks} looks");
    assert!(looks >= 20, "{looks} looks prove nothing");
    let rounds = took.as_nanos() / (SILENT / 4).as_nanos();
    assert!(
        u128::from(looks) <= rounds,
        "{looks} looks in {rounds} rounds"
    );
    assert_eq!(trial.db.pool().status().closes.total(), 0);
}

#[tokio::test]
async fn all_silent_statements_share_one_look() {
    let silent = Duration::from_secs(1);
    let trial = Trial::with("shared_look", |builder| {
        builder.max_size(12).silent_after(silent)
    });
    let trial = trial.await;
    drop(trial.all().await);
    let before = looks(&trial);

    let slow = world::slow(60);
    let many = join_all((0..12).map(|_| sqlx::query(world::sql(&slow)).execute(&trial.db)));
    let look = eventually("there was a look", async || looks(&trial) > before);
    let ((), took) = timed(async {
        tokio::select! {
            _ = many => panic!("the statements have ended"),
            () = look => {}
        }
    })
    .await;

    assert!(took >= silent, "the look came after {took:?}");
    assert_eq!(looks(&trial), before + 1);
}

#[tokio::test]
async fn an_answer_that_is_read_late_is_no_alarm() {
    let trial = Trial::with("late", |builder| {
        builder.max_size(3).silent_after(4 * SILENT)
    })
    .await;
    drop(trial.all().await);
    let mut rows = sqlx::query(world::MANY).fetch(&trial.db);
    let first = rows.next().await.unwrap();
    let mut statement = pin!(sqlx::query(nap()).execute(&trial.db));
    let begun = poll_fn(|context| Poll::Ready(statement.as_mut().poll(context)));
    assert!(begun.await.is_pending());
    let slow = world::slow(60);
    let mut other = pin!(sqlx::query(world::sql(&slow)).execute(&trial.db));
    let before = looks(&trial);

    // Both wait for their caller, while the watchdog is at work because of another statement.
    let look = eventually("there were looks", async || looks(&trial) > before + 4);
    tokio::select! {
        _ = &mut other => panic!("the statement has ended"),
        () = look => {}
    }

    statement.await.unwrap();
    assert!(first.is_ok());
    let rest = rows.try_fold(0, async |count, _| Ok(count + 1)).await;
    assert!(rest.unwrap() > 1_000);
}
