//! Faults during the writes and the commit of a transaction.

use std::time::Duration;

use cenote_testkit::{Then, Way};
use tokio::time::timeout;

use super::clock::eventually;
use super::{PATIENCE, STEP, Trial, each};

const ENDS: [(&str, Then); 4] = [
    ("reset", Then::Reset),
    ("close", Then::Close),
    ("stall", Then::Stall),
    ("lose", Then::Lose),
];

/// Writes both halves, and makes the fault during the commit. Returns whether the commit was
/// acknowledged.
async fn commit(trial: &Trial, id: i32, fault: impl FnOnce()) -> bool {
    let writing = async {
        let mut transaction = trial.db.begin().await.unwrap();
        for id in [id, -id] {
            let sql = trial.sql("INSERT INTO {}.pairs (id, amount) VALUES (?, ?)");
            let query = sqlx::query(sql).bind(id).bind(i64::from(id));
            query.execute(&mut transaction).await.unwrap();
        }
        fault();
        timeout(PATIENCE, transaction.commit()).await
    };
    let committed = writing.await.is_ok_and(|ended| ended.is_ok());
    if committed {
        trial.acknowledge(id);
    }
    committed
}

/// Ends the fault, and asserts that the server keeps no session without a client.
async fn recover(trial: &Trial, then: Then, id: i32) {
    trial.proxy.heal().unwrap();
    trial.first_success(id, 2 * STEP).await;
    if then == Then::Lose {
        // The end of the connection was lost too, so the server must be told.
        trial.proxy.reset();
    }
    trial.assert_recovered(id + 1, Duration::ZERO).await;
}

#[tokio::test]
async fn a_commit_that_does_not_reach_the_server_is_an_error_and_leaves_no_row() {
    each(ENDS, async |(name, then)| {
        let trial = Trial::new(&format!("up_{name}")).await;

        let cut = || trial.proxy.after(Way::ToServer, 3, then);
        assert!(!commit(&trial, 1, cut).await);

        recover(&trial, then, 10).await;
        if then != Then::Stall {
            assert!(!trial.has(1).await, "{name}: half a message took effect");
        }
    })
    .await;
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_an_error_and_leaves_both_rows() {
    each(ENDS, async |(name, then)| {
        let trial = Trial::new(&format!("down_{name}")).await;

        let cut = || trial.proxy.after(Way::ToClient, 3, then);
        assert!(!commit(&trial, 1, cut).await);

        eventually("the pair is there", async || trial.has(1).await).await;
        recover(&trial, then, 10).await;
    })
    .await;
}

#[tokio::test]
async fn a_transaction_that_is_cut_before_its_commit_leaves_no_row() {
    each(ENDS, async |(name, then)| {
        let trial = Trial::new(&format!("mid_{name}")).await;

        let work = trial.db.transaction(async || {
            trial.insert(1).await?;
            trial.proxy.after(Way::ToServer, 3, then);
            let second = timeout(PATIENCE, trial.insert(-1)).await;
            assert!(
                !matches!(second, Ok(Ok(()))),
                "{name}: the second insert succeeded"
            );
            second.unwrap_or(Ok(()))
        });
        let ended = timeout(PATIENCE * 4, work).await;

        assert!(
            !matches!(ended, Ok(Ok(()))),
            "{name}: half a pair was acknowledged"
        );
        recover(&trial, then, 10).await;
        eventually("no row is left", async || !trial.has(1).await).await;
    })
    .await;
}

#[tokio::test]
async fn a_slow_commit_is_acknowledged() {
    let trial = Trial::new("slow_commit").await;

    let slow = || trial.proxy.delay(Way::Both, Duration::from_millis(50));
    assert!(commit(&trial, 1, slow).await);

    trial.proxy.heal().unwrap();
    trial.assert_recovered(10, Duration::ZERO).await;
}
