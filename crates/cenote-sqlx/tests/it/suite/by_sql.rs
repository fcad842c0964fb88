//! Transactions that SQL text begins and ends.

use cenote::scope;

use super::Rig;
use super::world;

#[tokio::test]
async fn a_transaction_begun_by_sql_lasts_until_sql_ends_it() {
    let rig = Rig::new("known").await;
    assert!(!rig.db.in_transaction());

    scope(async {
        for end in ["COMMIT", "ROLLBACK"] {
            for begin in world::BEGINS {
                rig.run(begin).await;
                assert!(rig.db.in_transaction(), "{begin}");
                rig.insert(1).await.unwrap();
                assert!(rig.db.in_transaction(), "{begin}");
                rig.run("SAVEPOINT a; ROLLBACK TO SAVEPOINT a").await;
                assert!(rig.db.in_transaction(), "{begin}");
                rig.run(end).await;
                assert!(!rig.db.in_transaction(), "{begin} {end}");
                rig.run("DELETE FROM {}").await;
            }
        }
        rig.run("BEGIN; INSERT INTO {} (id, amount) VALUES (2, 1); COMMIT")
            .await;
        assert!(!rig.db.in_transaction());
    })
    .await;

    assert!(!rig.db.in_transaction());
    assert_eq!(rig.ids().await, [2]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_transaction_begun_by_sql_ends_with_its_scope() {
    let rig = Rig::with("over", |builder| builder.max_size(1)).await;

    scope(async {
        rig.run("BEGIN").await;
        rig.insert(1).await.unwrap();
        assert!(rig.db.in_transaction());
    })
    .await;

    scope(async {
        assert!(!rig.db.in_transaction());
        assert_eq!(rig.ids().await, [0_i32; 0]);
        assert!(!rig.db.in_transaction());
    })
    .await;
}

#[tokio::test]
async fn a_transaction_inside_one_begun_by_sql_is_refused_and_changes_nothing() {
    let rig = Rig::new("refused").await;

    scope(async {
        rig.run("BEGIN").await;
        rig.insert(1).await.unwrap();
        let inner = rig.db.transaction(async || rig.insert(2).await);
        let error = inner.await.unwrap_err().to_string();
        assert!(error.contains("begin it with `Db::begin`"), "{error}");
        assert!(rig.db.begin().await.is_err());
        rig.run("ROLLBACK").await;
        let after = rig.db.transaction(async || rig.insert(3).await);
        after.await.unwrap();
    })
    .await;

    assert_eq!(rig.ids().await, [3], "neither of the others was committed");
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_text_that_only_looks_like_a_begin_begins_nothing() {
    let rig = Rig::new("imagined").await;

    scope(async {
        rig.run("SELECT -- the period\n begin FROM (SELECT 1 AS begin) AS p")
            .await;
        assert!(!rig.db.in_transaction());
        let text = rig.sql("SELECT * FROM nowhere; BEGIN");
        sqlx::raw_sql(text).execute(&rig.db).await.unwrap_err();
        let work = rig.db.transaction(async || rig.insert(1).await);
        work.await.unwrap();
    })
    .await;

    assert_eq!(rig.ids().await, [1]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_begin_behind_comments_and_quotes_is_not_missed() {
    let rig = Rig::new("missed").await;
    for begin in [
        "-- don't forget\nBEGIN",
        "/* it's */ BEGIN",
        "SELECT 'it''s'; BEGIN",
    ] {
        scope(async {
            rig.run(begin).await;
            assert!(rig.db.in_transaction(), "{begin}");
            rig.insert(1).await.unwrap();
            let inner = rig.db.transaction(async || rig.insert(2).await);
            assert!(inner.await.is_err(), "{begin}");
            rig.run("ROLLBACK").await;
        })
        .await;
        assert_eq!(rig.ids().await, [0_i32; 0], "{begin}");
    }
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_transaction_begun_on_the_raw_connection_is_found_before_another_begins() {
    let rig = Rig::with("raw_inside", |builder| builder.max_size(1)).await;

    scope(async {
        let mut lease = rig.db.acquire().await.unwrap();
        sqlx::raw_sql("BEGIN").execute(&mut *lease).await.unwrap();
        drop(lease);
        rig.insert(1).await.unwrap();
        assert!(rig.db.begin().await.is_err());
        rig.run("ROLLBACK").await;
        let work = rig.db.transaction(async || rig.insert(2).await);
        work.await.unwrap();
    })
    .await;

    assert_eq!(rig.ids().await, [2]);
    rig.assert_clean().await;
}

/// Texts of all kinds in random order, some of which fail. A transaction may begin exactly when the
/// server has none open.
#[tokio::test]
async fn the_server_agrees_about_the_transactions_of_random_texts() {
    let rig = Rig::with("random", |builder| builder.max_size(1)).await;
    let (mut random, mut counts) = (fastrand::Rng::with_seed(0), [0, 0]);
    for seed in 0..200 {
        random.seed(seed);
        let statements = (0..random.usize(1..5)).map(|_| {
            let comment = match random.usize(..4) {
                0 => world::COMMENTS[random.usize(..world::COMMENTS.len())],
                _ => "",
            };
            let statement = match random.usize(..6) {
                0 | 1 => "BEGIN",
                2 => ["COMMIT", "ROLLBACK", "SELECT * FROM nowhere"][random.usize(..3)],
                _ => world::TEXTS[random.usize(..world::TEXTS.len())],
            };
            format!("{comment}{statement}")
        });
        let text = statements.collect::<Vec<_>>().join("; ");
        scope(async {
            let run = sqlx::raw_sql(world::sql(&text)).execute(&rig.db).await;
            let mut lease = rig.db.acquire().await.unwrap();
            let open = sqlx::raw_sql(world::OPEN).fetch_all(&mut lease).await;
            let open = open.map_or(1, |rows| sqlx::Row::get::<i64, _>(&rows[rows.len() - 1], 0));
            drop(lease);

            let begun = rig.db.begin().await;

            assert_eq!(
                begun.is_err(),
                open == 1,
                "seed {seed}: {text}: {run:?}, {begun:?}"
            );
            counts[usize::from(open == 1)] += 1;
        })
        .await;
    }
    assert!(counts.iter().all(|&count| count > 30), "{counts:?}");
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_text_that_would_be_undone_in_silence_is_refused_outside_a_scope() {
    let rig = Rig::with("alone", |builder| builder.max_size(1)).await;
    let refused = async |text: &str, fix: &str| {
        let text = rig.sql(text);
        let error = sqlx::raw_sql(text).execute(&rig.db).await.unwrap_err();
        assert!(error.to_string().contains(fix), "{error}");
        assert_eq!(super::Db::classify(&error), cenote_sqlx::Class::Statement);
    };

    refused("BEGIN", "`Db::transaction`").await;
    refused(
        "BEGIN; INSERT INTO {} (id, amount) VALUES (1, 1)",
        "`Db::begin`",
    )
    .await;
    refused(world::CHANGE, "`cenote::scope`").await;
    refused(world::CHANGE, "`Builder::setting`").await;

    assert_eq!(rig.ids().await, [0_i32; 0]);
    rig.run("BEGIN; INSERT INTO {} (id, amount) VALUES (2, 1); COMMIT")
        .await;
    assert_eq!(rig.ids().await, [2]);
    let mut lease = rig.db.acquire().await.unwrap();
    let change = sqlx::raw_sql(world::sql(world::CHANGE));
    change.execute(&mut lease).await.unwrap();
    drop(lease);
    rig.run_alone(world::CHANGE).await;
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_transaction_begun_by_a_text_that_fails_can_be_rolled_back() {
    let rig = Rig::with("half_begun", |builder| builder.max_size(1)).await;

    scope(async {
        let text =
            rig.sql("BEGIN; INSERT INTO {} (id, amount) VALUES (1, 1); SELECT * FROM nowhere");
        sqlx::raw_sql(text).execute(&rig.db).await.unwrap_err();
        assert!(rig.db.in_transaction());
        rig.run("ROLLBACK").await;
        assert!(!rig.db.in_transaction());
    })
    .await;

    assert_eq!(rig.ids().await, [0_i32; 0]);
    rig.assert_clean().await;
}
