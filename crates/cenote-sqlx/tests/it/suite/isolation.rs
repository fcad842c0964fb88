//! The options of a transaction, as the database reports them.

use std::time::Duration;

use cenote_sqlx::{Isolation, TransactionOptions};

use super::Rig;
use super::world;

const LEVELS: [Isolation; 4] = [
    Isolation::ReadUncommitted,
    Isolation::ReadCommitted,
    Isolation::RepeatableRead,
    Isolation::Serializable,
];

/// Returns whether the current transaction has this level. SQLite cannot tell, and MySQL tells it
/// with a delay.
async fn has_level(rig: &Rig, level: &str) -> Result<bool, sqlx::Error> {
    rig.ids().await;
    let Some(sql) = world::LEVEL else {
        return Ok(true);
    };
    for _ in 0..20 {
        let seen: String = sqlx::query_scalar(sql).fetch_one(&rig.db).await?;
        if seen == level {
            return Ok(true);
        }
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    Ok(false)
}

#[tokio::test]
async fn a_transaction_has_the_level_that_was_asked_for_and_the_next_has_its_own() {
    let rig = Rig::with("level", |builder| builder.max_size(1)).await;
    rig.insert(0).await.unwrap();

    for asked in LEVELS {
        for options in [
            TransactionOptions::new().isolation(asked),
            TransactionOptions::new().isolation(asked).read_only(),
        ] {
            let work = async || has_level(&rig, asked.sql()).await;
            let seen = rig.db.transaction_with(options, work).await;
            assert!(seen.unwrap(), "{options:?}");
        }
        let work = async || has_level(&rig, world::USUAL_LEVEL).await;
        let next = rig.db.transaction(work).await;
        assert!(next.unwrap(), "after {asked:?}");
    }

    assert_eq!(rig.db.pool().status().opened, 1);
    rig.assert_clean().await;
}

#[tokio::test]
async fn repeatable_read_sees_one_state_and_read_committed_sees_new_commits() {
    let rig = Rig::new("one_state").await;
    for (first, level) in [
        (10, Isolation::RepeatableRead),
        (20, Isolation::ReadCommitted),
    ] {
        let options = TransactionOptions::new().isolation(level).read_only();

        let work = rig.db.transaction_with(options, async || {
            let before = rig.ids().await.len();
            let outside = cenote::scope::Scope::new();
            outside.run(rig.insert(first)).await?;
            Ok::<_, sqlx::Error>(rig.ids().await.len() - before)
        });
        let appeared = work.await.unwrap();

        let one_state = level == Isolation::RepeatableRead || world::LEVEL.is_none();
        assert_eq!(appeared, usize::from(!one_state), "{level:?}");
    }
}

#[tokio::test]
async fn options_for_a_nested_transaction_are_an_error() {
    let rig = Rig::new("nested_level").await;
    let options = TransactionOptions::new().isolation(Isolation::Serializable);

    let outer = rig.db.transaction(async || {
        rig.insert(1).await?;
        let inner = rig
            .db
            .transaction_with(options, async || rig.insert(2).await);
        assert!(matches!(
            inner.await,
            Err(sqlx::Error::InvalidSavePointStatement)
        ));
        rig.insert(3).await
    });

    outer.await.unwrap();
    assert_eq!(rig.ids().await, [1, 3]);
    rig.assert_clean().await;
}
