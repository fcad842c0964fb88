//! Conflicts between transactions, on real servers.

use std::sync::atomic::{AtomicU32, Ordering};

use cenote_sqlx::{Class, Retry};
use tokio::sync::Barrier;

use super::world::{self, Db};
use super::{Error, Trial};

async fn update(trial: &Trial, id: i32) -> Result<(), Error> {
    let sql = trial.sql("UPDATE {}.pairs SET amount = amount + 1 WHERE id = ?");
    sqlx::query(sql).bind(id).execute(&trial.db).await.map(drop)
}

async fn amounts(trial: &Trial) -> Vec<i64> {
    let sql = trial.sql("SELECT amount FROM {}.pairs ORDER BY id");
    sqlx::query_scalar(sql)
        .fetch_all(&trial.admin)
        .await
        .unwrap()
}

/// A trial with the rows 1 and 2, whose amounts are 0.
async fn trial(name: &str) -> Trial {
    let trial = Trial::new(name).await;
    let sql = trial.sql("INSERT INTO {}.pairs (id, amount) VALUES (1, 0), (2, 0)");
    sqlx::raw_sql(sql).execute(&trial.admin).await.unwrap();
    trial
}

#[tokio::test]
async fn the_victim_of_a_deadlock_gets_a_conflict_and_keeps_its_connection() {
    let trial = trial("deadlock").await;
    let barrier = Barrier::new(2);
    let half = async |first: i32, second: i32| {
        let work = trial.db.transaction(async || {
            update(&trial, first).await?;
            barrier.wait().await;
            let updated = update(&trial, second).await;
            if updated.is_err() {
                // A caller that ignores the error must not write outside of the transaction.
                assert!(update(&trial, first).await.is_err(), "committed by itself");
            }
            updated
        });
        work.await
    };

    let ends = tokio::join!(half(1, 2), half(2, 1));
    let opened = trial.db.pool().status().opened;
    let error = match ends {
        (Ok(()), Err(error)) | (Err(error), Ok(())) => error,
        both => panic!("not exactly one victim: {both:?}"),
    };

    let class = Db::classify(&error);
    assert_eq!(class, Class::Conflict, "{error}");
    assert!(class.is_retryable() && !class.poisons());
    assert_eq!(
        amounts(&trial).await,
        [1, 1],
        "one transaction is committed as a whole"
    );
    update(&trial, 1).await.unwrap();
    let seen = trial.db.pool().status();
    assert_eq!(seen.opened, opened, "{seen:?}");
    assert_eq!(seen.closes.by(cenote::CloseReason::Broken), 0);
}

#[tokio::test]
async fn the_whole_transaction_of_a_deadlock_victim_is_tried_again() {
    let trial = trial("deadlock_again").await;
    let (barrier, tries) = (Barrier::new(2), AtomicU32::new(0));
    let half = async |first: i32, second: i32| {
        let mut met = false;
        let work = trial.db.retrying(Retry::default(), || {
            let meets = !std::mem::replace(&mut met, true);
            let (trial, barrier, tries) = (&trial, &barrier, &tries);
            async move {
                tries.fetch_add(1, Ordering::Relaxed);
                update(trial, first).await?;
                if meets {
                    barrier.wait().await;
                }
                update(trial, second).await
            }
        });
        work.await
    };

    let (one, other) = tokio::join!(half(1, 2), half(2, 1));

    one.unwrap();
    other.unwrap();
    assert!(tries.load(Ordering::Relaxed) >= 3, "there was no deadlock");
    assert_eq!(
        amounts(&trial).await,
        [2, 2],
        "each transaction is committed once"
    );
}

#[tokio::test]
async fn a_lock_timeout_is_a_conflict() {
    let trial = trial("lock_wait").await;
    let mut holder = trial.db.begin().await.unwrap();
    let lock = trial.sql("UPDATE {}.pairs SET amount = 5 WHERE id = 1");
    sqlx::query(lock).execute(&mut holder).await.unwrap();

    let work = trial.db.transaction(async || {
        sqlx::raw_sql(world::SHORT_WAIT).execute(&trial.db).await?;
        update(&trial, 1).await
    });
    let error = work.await.unwrap_err();
    holder.rollback().await.unwrap();

    assert_eq!(Db::classify(&error), Class::Conflict, "{error}");
    update(&trial, 1).await.unwrap();
    assert_eq!(amounts(&trial).await, [1, 0]);
}

#[tokio::test]
async fn a_row_that_the_table_refuses_has_the_class_statement_and_closes_no_connection() {
    let trial = trial("refused_rows").await;
    let opened = {
        update(&trial, 1).await.unwrap();
        trial.db.pool().status().opened
    };

    for (text, name) in [
        ("INSERT INTO {}.pairs (id, amount) VALUES (1, 0)", "unique"),
        (
            "INSERT INTO {}.pairs (id, amount) VALUES (9, NULL)",
            "not null",
        ),
        (
            "INSERT INTO {}.pairs (id, amount) VALUES (9, 'x y')",
            "value",
        ),
        ("SELECT * FROM {}.pairs WHERE", "syntax"),
    ] {
        let error = sqlx::raw_sql(trial.sql(text))
            .execute(&trial.db)
            .await
            .unwrap_err();
        assert_eq!(Db::classify(&error), Class::Statement, "{name}: {error}");
    }

    update(&trial, 1).await.unwrap();
    assert_eq!(trial.db.pool().status().opened, opened);
}
