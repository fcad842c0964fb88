//! Transactional functions among conflicts, deadlocks and lost connections, on PostgreSQL.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cenote_sqlx::{Retry, transactional};
use tokio::sync::Barrier;

use crate::postgres::suite::{Done, Problem, Rig};
use crate::world::postgres::Db;

const CONFLICT: &str = "DO $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '40001'; END $$";

/// Rests between tries that are short enough for a test.
fn eager(attempts: u32) -> Retry {
    Retry {
        attempts,
        first_rest: Duration::from_millis(1),
        longest_rest: Duration::from_millis(5),
    }
}

async fn level(db: &Db) -> Result<String, sqlx::Error> {
    let show = sqlx::query_scalar("SHOW transaction_isolation");
    show.fetch_one(db).await
}

#[tokio::test]
async fn the_isolation_level_is_the_one_that_was_asked_for() {
    #[transactional(isolation = Serializable)]
    async fn strict(db: &Db) -> Result<String, sqlx::Error> {
        level(db).await
    }
    #[transactional(isolation = RepeatableRead, read_only)]
    async fn one_state(db: &Db) -> Result<(String, String), sqlx::Error> {
        let read_only = sqlx::query_scalar("SHOW transaction_read_only");
        Ok((level(db).await?, read_only.fetch_one(db).await?))
    }
    #[transactional]
    async fn usual(db: &Db) -> Result<String, sqlx::Error> {
        level(db).await
    }
    let rig = Rig::new("level").await;

    assert_eq!(strict(&rig.db).await.unwrap(), "serializable");
    let seen = one_state(&rig.db).await.unwrap();
    assert_eq!((&*seen.0, &*seen.1), ("repeatable read", "on"));
    assert_eq!(usual(&rig.db).await.unwrap(), "read committed");
}

#[tokio::test]
async fn a_serialization_failure_runs_the_whole_function_again() {
    /// In the first try another transaction changes the row after it was read.
    #[transactional(rig.db, isolation = Serializable, retry)]
    async fn double(rig: &Arc<Rig>, tries: &AtomicU32, mut step: i32) -> Result<i32, Problem> {
        let read = sqlx::query_scalar(rig.sql("SELECT max(id) FROM {}"));
        let id: i32 = read.fetch_one(&rig.db).await?;
        if tries.fetch_add(1, Ordering::Relaxed) == 0 {
            let other = rig.clone();
            let change = tokio::spawn(async move { other.run("UPDATE {} SET id = id + 5").await });
            change.await.expect("the update does not panic")?;
        }
        step += 1;
        let write = sqlx::query(rig.sql("UPDATE {} SET id = ?"));
        write.bind(id * 2 + step).execute(&rig.db).await?;
        Ok(step)
    }
    let rig = Arc::new(Rig::new("serial").await);
    rig.insert(1).await.unwrap();
    let tries = AtomicU32::new(0);

    let step = double(&rig, &tries, 0).await.unwrap();

    assert_eq!(tries.load(Ordering::Relaxed), 2);
    assert_eq!(step, 1, "an argument is fresh at each try");
    assert_eq!(rig.ids().await, [13]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_deadlock_runs_the_whole_function_again() {
    #[transactional(rig.db, retry = eager(5))]
    async fn lock(rig: &Rig, order: [i32; 2], both: &Barrier, tries: &AtomicU32) -> Done {
        let is_first = tries.fetch_add(1, Ordering::Relaxed) < 2;
        for id in order {
            let lock = sqlx::query(rig.sql("SELECT id FROM {} WHERE id = ? FOR UPDATE"));
            lock.bind(id).execute(&rig.db).await?;
            if is_first && id == order[0] {
                both.wait().await;
            }
        }
        Ok(())
    }
    let rig = Rig::new("deadlock").await;
    rig.insert(1).await.unwrap();
    rig.insert(2).await.unwrap();
    let (both, tries) = (Barrier::new(2), AtomicU32::new(0));

    let (one, other) = tokio::join!(
        lock(&rig, [1, 2], &both, &tries),
        lock(&rig, [2, 1], &both, &tries)
    );

    one.unwrap();
    other.unwrap();
    assert_eq!(
        tries.load(Ordering::Relaxed),
        3,
        "one of them was tried twice"
    );
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_function_that_always_conflicts_ends_with_the_conflict() {
    type Boxed = Box<dyn Error + Send + Sync>;
    #[transactional(rig.db, retry = eager(attempts))]
    async fn in_vain(rig: &Rig, attempts: u32, tries: &AtomicU32) -> Result<(), Boxed> {
        tries.fetch_add(1, Ordering::Relaxed);
        rig.insert(1).await?;
        rig.run(CONFLICT).await?;
        Ok(())
    }
    let rig = Rig::new("in_vain").await;
    let tries = AtomicU32::new(0);

    let error = in_vain(&rig, 3, &tries).await.unwrap_err();
    assert!(error.to_string().contains("on purpose"), "{error}");
    assert_eq!(tries.swap(0, Ordering::Relaxed), 3);

    assert!(in_vain(&rig, 0, &tries).await.is_err());
    assert_eq!(tries.load(Ordering::Relaxed), 1, "zero counts as one");
    assert!(rig.ids().await.is_empty());
    rig.assert_clean().await;
}

#[tokio::test]
async fn an_inner_function_is_tried_once_and_the_outermost_is_repeated() {
    #[transactional(rig.db, retry = eager(5))]
    async fn inner(rig: &Rig, tries: &AtomicU32) -> Result<(), Box<dyn Error>> {
        if tries.fetch_add(1, Ordering::Relaxed) < 2 {
            rig.run(CONFLICT).await?;
        }
        Ok(rig.insert(2).await?)
    }
    #[transactional(rig.db, retry = eager(5))]
    async fn outer(rig: &Rig, outer: &AtomicU32, tries: &AtomicU32) -> Result<(), Box<dyn Error>> {
        outer.fetch_add(1, Ordering::Relaxed);
        rig.insert(1).await?;
        inner(rig, tries).await
    }
    let rig = Rig::new("inside").await;
    let (outers, inners) = (AtomicU32::new(0), AtomicU32::new(0));

    outer(&rig, &outers, &inners).await.unwrap();

    assert_eq!(outers.load(Ordering::Relaxed), 3);
    assert_eq!(inners.load(Ordering::Relaxed), 3);
    assert_eq!(rig.ids().await, [1, 2]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_rollback_on_a_lost_connection_does_not_hide_the_first_error() {
    #[transactional(rig.db)]
    async fn lose_it(rig: &Arc<Rig>) -> Result<(), Problem> {
        rig.insert(1).await?;
        let who = sqlx::query_scalar("SELECT pg_backend_pid()");
        let who: i32 = who.fetch_one(&rig.db).await?;
        let other = rig.clone();
        let kill = tokio::spawn(async move {
            let kill = sqlx::query("SELECT pg_terminate_backend($1, 10000)");
            kill.bind(who).execute(&other.db).await.map(drop)
        });
        kill.await.expect("the kill does not panic")?;
        Err(Problem::SoldOut)
    }
    let rig = Arc::new(Rig::new("lost").await);

    let error = lose_it(&rig).await.unwrap_err();

    assert!(matches!(error, Problem::SoldOut), "{error:?}");
    assert!(rig.ids().await.is_empty());
    rig.assert_clean().await;
}
