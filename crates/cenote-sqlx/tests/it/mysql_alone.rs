//! MySQL and MariaDB alone: seen from the server.

use cenote_sqlx::{Class, Db};
use sqlx::MySql;

use crate::world::mysql as world;

fn one() -> Db<MySql> {
    Db::mysql(world::url()).max_size(1).build().unwrap()
}

async fn number(db: &Db<MySql>, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(db).await.unwrap()
}

#[tokio::test]
async fn locks_are_let_go_and_the_connection_is_the_same() {
    let (db, other) = (one(), one());
    sqlx::raw_sql("CREATE TABLE IF NOT EXISTS cenote_locked (a INT)")
        .execute(&db)
        .await
        .unwrap();
    let before = number(&db, "SELECT CAST(CONNECTION_ID() AS SIGNED)").await;

    assert_eq!(
        number(&db, "SELECT GET_LOCK('cenote_left_over', 0)").await,
        1
    );
    assert_eq!(
        number(&db, "SELECT CAST(CONNECTION_ID() AS SIGNED)").await,
        before
    );
    assert_eq!(
        number(
            &other,
            "SELECT CAST(IS_FREE_LOCK('cenote_left_over') AS SIGNED)"
        )
        .await,
        1
    );
    sqlx::raw_sql("LOCK TABLES cenote_locked WRITE")
        .execute(&db)
        .await
        .unwrap();
    assert_eq!(
        number(&db, "SELECT CAST(CONNECTION_ID() AS SIGNED)").await,
        before
    );

    sqlx::raw_sql("INSERT INTO cenote_locked VALUES (1)")
        .execute(&other)
        .await
        .unwrap();
    assert_eq!(db.pool().status().opened, 1);
}

#[tokio::test]
async fn what_a_session_was_left_with_is_gone_with_its_connection() {
    let db = one();
    let left: [(&str, &'static str); 8] = [
        (
            "SET @left_over = 1",
            "SELECT CAST(@left_over IS NOT NULL AS SIGNED)",
        ),
        (
            "SELECT 1 INTO @left_over",
            "SELECT CAST(@left_over IS NOT NULL AS SIGNED)",
        ),
        (
            "SET SESSION sort_buffer_size = 65536",
            "SELECT CAST(@@sort_buffer_size = 65536 AS SIGNED)",
        ),
        (
            "USE information_schema",
            "SELECT CAST(DATABASE() = 'information_schema' AS SIGNED)",
        ),
        (
            "SET autocommit = 0",
            "SELECT CAST(@@autocommit = 0 AS SIGNED)",
        ),
        (
            "EXECUTE IMMEDIATE 'SET @left_over = 1'",
            "SELECT CAST(@left_over IS NOT NULL AS SIGNED)",
        ),
        (
            "BEGIN NOT ATOMIC SET @left_over = 1; END",
            "SELECT CAST(@left_over IS NOT NULL AS SIGNED)",
        ),
        (
            "IF 1 THEN SET @left_over = 1; END IF",
            "SELECT CAST(@left_over IS NOT NULL AS SIGNED)",
        ),
    ];
    for (leave, seen) in left {
        let mut lease = db.acquire().await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(leave))
            .execute(&mut lease)
            .await
            .unwrap();
        let there: i64 = sqlx::query_scalar(seen)
            .fetch_one(&mut lease)
            .await
            .unwrap();
        assert_eq!(there, 1, "{leave} is to leave something");
        drop(lease);

        assert_eq!(number(&db, seen).await, 0, "{leave} was left over");
    }
    let mut lease = db.acquire().await.unwrap();
    sqlx::raw_sql("CREATE TEMPORARY TABLE left_over (a INT)")
        .execute(&mut lease)
        .await
        .unwrap();
    drop(lease);
    assert!(
        sqlx::raw_sql("SELECT * FROM left_over")
            .execute(&db)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_statement_prepared_by_sql_is_gone_with_its_connection() {
    let db = one();
    let mut lease = db.acquire().await.unwrap();
    for sql in ["PREPARE left_over FROM 'SELECT 1'", "EXECUTE left_over"] {
        sqlx::raw_sql(sql).execute(&mut lease).await.unwrap();
    }
    drop(lease);

    let gone = sqlx::raw_sql("EXECUTE left_over").execute(&db).await;

    let error = gone.unwrap_err().to_string();
    assert!(error.contains("Unknown prepared statement"), "{error}");
}

#[tokio::test]
async fn the_drivers_statements_survive_what_need_not_close_the_connection() {
    let db = one();
    let prepared = async || {
        let mut lease = db.acquire().await.unwrap();
        let sql = "SHOW SESSION STATUS LIKE 'Com_stmt_prepare'";
        let (_, count): (String, String) = sqlx::query_as(sql).fetch_one(&mut lease).await.unwrap();
        count.parse::<u32>().unwrap()
    };
    let ask = async || {
        let sum: i64 = sqlx::query_scalar("SELECT 815 + ?")
            .bind(1)
            .fetch_one(&db)
            .await
            .unwrap();
        assert_eq!(sum, 816);
    };
    ask().await;
    prepared().await;
    let before = prepared().await;

    for leave in [
        "START TRANSACTION",
        "SELECT GET_LOCK('cenote_kept', 0)",
        "UNLOCK TABLES",
    ] {
        sqlx::raw_sql(leave).execute(&db).await.unwrap();
        ask().await;
    }

    assert_eq!(prepared().await, before, "nothing was prepared again");
    assert_eq!(db.pool().status().opened, 1);
}

#[tokio::test]
async fn a_killed_connection_is_replaced_on_the_next_use() {
    let (db, admin) = (one(), one());
    let victim = number(&db, "SELECT CAST(CONNECTION_ID() AS SIGNED)").await;
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("KILL {victim}")))
        .execute(&admin)
        .await
        .unwrap();

    let error = sqlx::query("SELECT 1").execute(&db).await.unwrap_err();

    assert_eq!(Db::<MySql>::classify(&error), Class::Broken, "{error}");
    assert_ne!(
        number(&db, "SELECT CAST(CONNECTION_ID() AS SIGNED)").await,
        victim
    );
}

/// Two transactions that want each other's rows. The results of both.
async fn deadlock(
    db: &Db<MySql>,
    table: &'static str,
) -> (Result<(), sqlx::Error>, Result<(), sqlx::Error>) {
    let setup = format!(
        "DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (id INT PRIMARY KEY, amount INT); INSERT INTO {table} VALUES (1, 0), (2, 0)"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(setup))
        .execute(db)
        .await
        .unwrap();
    let barrier = tokio::sync::Barrier::new(2);
    let half = async |first: i32, second: i32| {
        let work = db.transaction(async || {
            let update = format!("UPDATE {table} SET amount = amount + 1 WHERE id = ?");
            sqlx::query(sqlx::AssertSqlSafe(update.clone()))
                .bind(first)
                .execute(db)
                .await?;
            barrier.wait().await;
            let lost = sqlx::query(sqlx::AssertSqlSafe(update.clone()))
                .bind(second)
                .execute(db)
                .await;
            if lost.is_err() {
                // Whoever goes on regardless must not write outside the transaction.
                let next = sqlx::query(sqlx::AssertSqlSafe(update))
                    .bind(first)
                    .execute(db)
                    .await;
                assert!(
                    next.is_err(),
                    "the statement would have been committed by itself"
                );
            }
            lost.map(drop)
        });
        work.await
    };
    tokio::join!(half(1, 2), half(2, 1))
}

#[tokio::test]
async fn the_victim_of_a_deadlock_cannot_go_on_outside_its_transaction() {
    let db = Db::mysql(world::url()).max_size(2).build().unwrap();

    let (one, other) = deadlock(&db, "cenote_deadlock").await;

    let error = one
        .as_ref()
        .err()
        .or(other.as_ref().err())
        .expect("one of them lost");
    assert_eq!(Db::<MySql>::classify(error), Class::Conflict, "{error}");
    assert_eq!(
        number(
            &db,
            "SELECT CAST(SUM(amount) AS SIGNED) FROM cenote_deadlock"
        )
        .await,
        2
    );
}
