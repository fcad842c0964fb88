//! Connections that the server kills, idle and busy ones.

use std::time::Duration;

use cenote_sqlx::Class;

use super::clock::{by, eventually};
use super::{Db, MAX_SIZE, Trial, each, world};

/// Kills these connections.
pub(super) async fn kill(trial: &Trial, victims: &[i64]) {
    for victim in victims {
        let sql = world::KILL.replace("{}", &victim.to_string());
        sqlx::raw_sql(world::sql(&sql))
            .execute(&trial.admin)
            .await
            .unwrap();
    }
}

/// The driver does not notice the end of a connection that it does not use, so the first statement
/// on one fails. After that all others are checked before they are lent.
#[tokio::test]
async fn idle_connections_that_are_killed_fail_one_statement_or_none_if_they_are_checked() {
    each(
        [
            ("kill_idle", Duration::from_secs(5), MAX_SIZE, 1),
            ("kill_many", Duration::from_secs(5), 2 * MAX_SIZE, 1),
            ("kill_checked", Duration::ZERO, MAX_SIZE, 0),
        ],
        async |(name, check, size, failures)| {
            let trial = Trial::with(name, |builder| {
                builder.max_size(size).check_after_idle(check)
            });
            let trial = trial.await;
            let victims: Vec<i64> = trial.all().await.iter().map(|(_, who)| *who).collect();
            assert_eq!(victims.len(), size);
            kill(&trial, &victims).await;
            eventually("the sessions are gone", async || {
                trial.sessions().await == 0
            })
            .await;

            let mut failed = 0;
            for _ in 0..5 * size / 2 {
                if let Err(error) = sqlx::query("SELECT 1").execute(&trial.db).await {
                    assert_eq!(Db::classify(&error), Class::Broken, "{error}");
                    failed += 1;
                }
            }

            assert_eq!(failed, failures, "{name}");
            let closes = trial.db.pool().status().closes;
            assert_eq!(closes.by(cenote::CloseReason::Broken), failures, "{name}");
            trial.assert_recovered(1, Duration::ZERO).await;
        },
    )
    .await;
}

#[tokio::test]
async fn statements_on_killed_connections_fail_at_once_with_the_cause() {
    let trial = Trial::new("kill_busy").await;
    let all = trial.all().await;
    let victims: Vec<i64> = all.iter().map(|(_, who)| *who).collect();
    let slow = world::slow(60);
    let running = all.into_iter().map(|(mut lease, _)| {
        let sql = world::sql(&slow);
        tokio::spawn(async move { sqlx::raw_sql(sql).execute(&mut lease).await.map(drop) })
    });
    let running: Vec<_> = running.collect();
    eventually("all connections are busy", async || {
        trial.count(world::BUSY).await == MAX_SIZE as i64
    })
    .await;

    kill(&trial, &victims).await;

    for ended in running {
        let error = by(Duration::from_secs(1), ended)
            .await
            .unwrap()
            .unwrap_err();
        assert_eq!(Db::classify(&error), Class::Broken, "{error}");
        let causes = [
            "terminating connection",
            "killed",
            "Lost connection",
            "EOF",
            "reset",
        ];
        let text = error.to_string();
        assert!(causes.iter().any(|cause| text.contains(cause)), "{error}");
    }
    trial.assert_recovered(1, Duration::ZERO).await;
}

#[tokio::test]
async fn a_transaction_that_is_killed_is_an_error_and_leaves_no_row() {
    let trial = Trial::new("kill_transaction").await;

    let work = trial.db.transaction(async || {
        trial.insert(1).await?;
        let who = sqlx::query_scalar(world::WHO.unwrap());
        let who: i64 = who.fetch_one(&trial.db).await?;
        kill(&trial, &[who]).await;
        let second = trial.insert(-1).await;
        assert!(second.is_err(), "the insert ran on another connection");
        assert!(trial.insert(-1).await.is_err(), "the transaction is lost");
        Ok::<_, sqlx::Error>(())
    });

    assert!(work.await.is_err(), "a lost transaction was committed");
    trial.assert_recovered(10, Duration::ZERO).await;
    assert!(!trial.has(1).await && !trial.has(-1).await);
}

#[tokio::test]
async fn a_waiter_is_served_when_the_connections_of_the_holders_are_killed() {
    let trial = Trial::new("kill_line").await;
    let all = trial.all().await;
    let victims: Vec<i64> = all.iter().map(|(_, who)| *who).collect();
    let waiting = async {
        let mut lease = trial.acquire().await.unwrap();
        sqlx::query("SELECT 1").execute(&mut lease).await.unwrap();
    };
    let killing = async {
        eventually("the caller waits", async || {
            trial.db.pool().status().waiting == 1
        })
        .await;
        kill(&trial, &victims).await;
        for (mut lease, _) in all {
            // The holder gets the error and gives the connection back.
            eventually("the connection is dead", async || {
                sqlx::query("SELECT 1").execute(&mut lease).await.is_err()
            })
            .await;
        }
    };

    tokio::join!(waiting, killing);

    trial.assert_recovered(1, Duration::ZERO).await;
}
