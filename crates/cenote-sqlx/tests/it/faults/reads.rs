//! Reads that are tried again, because their connection was dead.

use std::time::Duration;

use futures_util::TryStreamExt;
use futures_util::future::join_all;

use super::clock::eventually;
use super::kills::kill;
use super::{Trial, world};

const SIZE: usize = 20;
const REQUESTS: usize = 100;

/// Twenty opens at the same time take a second on a busy machine.
const PATIENT: Duration = Duration::from_secs(30);

/// A trial whose idle connections were all killed.
async fn killed(name: &str) -> Trial {
    let trial = Trial::with(name, |builder| {
        let builder = builder.acquire_timeout(PATIENT).open_timeout(PATIENT);
        builder.max_size(SIZE).retry_reads(true)
    })
    .await;
    let victims: Vec<i64> = trial.all().await.iter().map(|(_, who)| *who).collect();
    assert_eq!(victims.len(), SIZE);
    kill(&trial, &victims).await;
    eventually("the sessions are gone", async || {
        trial.sessions().await == 0
    })
    .await;
    trial
}

async fn read(trial: &Trial, nth: usize) -> Result<i64, sqlx::Error> {
    let nth = i64::try_from(nth).unwrap();
    let sql = world::sql("SELECT CAST(? AS DECIMAL(9)) = 7 AS a /* update */");
    match nth % 3 {
        0 => sqlx::query(sql).bind(nth).fetch_one(&trial.db).await?,
        1 => sqlx::query(sql)
            .bind(nth)
            .fetch_all(&trial.db)
            .await?
            .remove(0),
        _ => {
            let rows = sqlx::query(sql).bind(nth).fetch(&trial.db);
            rows.try_collect::<Vec<_>>().await?.remove(0)
        }
    };
    Ok(nth)
}

/// Kills all idle connections, and returns how many reads and writes of the requests after that
/// fail. They take turns, and a write is first if `writes` is 0.
async fn failures(name: &str, writes: usize) -> (usize, usize) {
    let trial = killed(name).await;
    let mut failed = (0, 0);
    for nth in 0..REQUESTS {
        if nth % 2 == writes {
            failed.1 += usize::from(trial.insert(1_000 + nth as i32).await.is_err());
        } else {
            failed.0 += usize::from(read(&trial, nth).await.is_err());
        }
    }
    println!("{name}: {failed:?} reads and writes of {REQUESTS} requests failed");
    failed
}

#[tokio::test]
async fn no_read_and_at_most_one_write_fails_after_all_idle_connections_were_killed() {
    assert_eq!(failures("reads_first", 1).await, (0, 0));
    let (reads, writes) = failures("writes_first", 0).await;

    assert_eq!(reads, 0);
    assert!(writes <= 1, "{writes} writes failed");
}

#[tokio::test]
async fn no_read_fails_if_all_come_at_the_same_time() {
    let trial = killed("reads_at_once").await;

    let all = join_all((0..REQUESTS).map(|nth| read(&trial, nth))).await;

    let failed: Vec<_> = all.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[tokio::test]
async fn a_read_in_a_transaction_or_a_changed_session_is_not_tried_again() {
    let trial = Trial::with("reads_inside", |builder| builder.retry_reads(true)).await;
    let who = || sqlx::query_scalar::<_, i64>(world::WHO.unwrap());

    let inside = trial.db.transaction(async || {
        kill(&trial, &[who().fetch_one(&trial.db).await?]).await;
        who().fetch_one(&trial.db).await
    });
    assert!(inside.await.is_err(), "the read left the transaction");

    let changed = async {
        sqlx::raw_sql(world::CHANGE).execute(&trial.db).await?;
        kill(&trial, &[who().fetch_one(&trial.db).await?]).await;
        who().fetch_one(&trial.db).await
    };
    let changed = cenote::scope(changed).await;
    assert!(changed.is_err(), "the read left the changed session");
}

#[tokio::test]
async fn a_read_that_calls_a_function_that_writes_is_not_tried_again() {
    let trial = killed("reads_that_write").await;
    let writes = trial.sql(world::WRITING_READ);

    let error = sqlx::raw_sql(writes).fetch_all(&trial.db).await;

    assert!(error.is_err(), "the statement ran on another connection");
}
