//! Which connection a statement uses.

use cenote::scope;
use futures_util::StreamExt;

use super::world;
use super::{Rig, number};

/// Returns the id of the connection on the server, or its number in the pool.
async fn who(rig: &Rig) -> i64 {
    match world::WHO {
        Some(sql) => number(&rig.db, sql).await.unwrap(),
        None => {
            let lease = rig.db.acquire().await.unwrap();
            i64::try_from(cenote_sqlx::Lease::id(&lease)).unwrap()
        }
    }
}

#[tokio::test]
async fn a_transaction_uses_one_connection_while_others_use_the_rest() {
    let rig = Rig::new("pinned").await;

    let work = rig.db.transaction(async || {
        let mine = who(&rig).await;
        for _ in 0..5 {
            let outside = async {
                let others = [who(&rig).await, who(&rig).await];
                assert!(!others.contains(&mine), "the connection was lent twice");
            };
            let other = cenote::scope::Scope::new();
            other.run(outside).await;
            assert_eq!(who(&rig).await, mine);
            let nested = rig
                .db
                .transaction(async || Ok::<_, sqlx::Error>(who(&rig).await));
            assert_eq!(nested.await?, mine);
            let (one, two) = tokio::join!(who(&rig), who(&rig));
            assert_eq!((one, two), (mine, mine));
        }
        Ok::<_, sqlx::Error>(())
    });

    work.await.unwrap();
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_changed_session_serves_the_statements_of_its_scope_and_no_others() {
    let rig = Rig::new("pinned_dirty").await;

    scope(async {
        rig.run(world::CHANGE).await;
        assert_eq!(rig.db.pool().status().in_use, 1, "the connection is pinned");
        let mine = who(&rig).await;
        for _ in 0..3 {
            let other = cenote::scope::Scope::new();
            assert_ne!(other.run(who(&rig)).await, mine);
            assert_eq!(who(&rig).await, mine);
            assert_eq!(number(&rig.db, world::CHANGED).await.unwrap(), 1);
        }
        assert!(
            !rig.db.in_transaction(),
            "a changed session is no transaction"
        );
    })
    .await;

    assert_eq!(rig.db.pool().status().in_use, 0);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_stream_keeps_its_connection_and_a_statement_beside_it_gets_another() {
    let rig = Rig::new("pinned_stream").await;

    let mut rows = sqlx::query(world::MANY).fetch(&rig.db);
    assert!(rows.next().await.unwrap().is_ok());
    assert_eq!(
        number(&rig.db, "SELECT count(*) FROM (SELECT 1 AS a) AS b")
            .await
            .unwrap(),
        1
    );
    let mut more = sqlx::query(world::MANY).fetch(&rig.db);
    assert!(more.next().await.unwrap().is_ok());
    assert_eq!(rig.db.pool().status().in_use, 2);
    drop(rows);
    drop(more);

    assert_eq!(rig.db.pool().status().in_use, 0);
    rig.assert_clean().await;
}

#[tokio::test]
async fn between_statements_a_scope_holds_no_connection() {
    let rig = Rig::with("between", |builder| builder.max_size(1)).await;

    let (one, other) = (cenote::scope::Scope::new(), cenote::scope::Scope::new());
    for id in 0..3 {
        one.run(rig.insert(2 * id)).await.unwrap();
        other.run(rig.insert(2 * id + 1)).await.unwrap();
    }

    assert_eq!(rig.ids().await, [0, 1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn a_pinned_connection_that_was_killed_is_replaced_only_outside_a_transaction() {
    let Some(sql) = world::WHO else {
        // A connection of SQLite cannot be killed, but it can be discarded.
        return discarded().await;
    };
    let rig = Rig::with("killed", |builder| builder.max_size(1)).await;
    let admin = Rig::with("killer", |builder| builder.max_size(1)).await;
    let kill = async |victim: i64| {
        admin
            .run(&world::KILL.replace("{}", &victim.to_string()))
            .await;
    };

    scope(async {
        rig.run(world::CHANGE).await;
        let victim = number(&rig.db, sql).await.unwrap();
        kill(victim).await;
        assert!(number(&rig.db, sql).await.is_err());
        assert_ne!(
            number(&rig.db, sql).await.unwrap(),
            victim,
            "a new connection"
        );
    })
    .await;
    let lost = rig.db.transaction(async || {
        rig.insert(1).await?;
        kill(number(&rig.db, sql).await?).await;
        for _ in 0..3 {
            assert!(rig.insert(2).await.is_err(), "the transaction is lost");
        }
        Ok::<_, sqlx::Error>(())
    });

    assert!(lost.await.is_err(), "a lost transaction was committed");
    assert_eq!(rig.ids().await, [0_i32; 0]);
    rig.assert_clean().await;
}

async fn discarded() {
    let rig = Rig::with("killed", |builder| builder.max_size(1)).await;

    scope(async {
        rig.run(world::CHANGE).await;
        let before = who(&rig).await;
        cenote_sqlx::Lease::discard(rig.db.acquire().await.unwrap());
        assert_ne!(who(&rig).await, before, "a new connection");
    })
    .await;

    rig.assert_clean().await;
}
