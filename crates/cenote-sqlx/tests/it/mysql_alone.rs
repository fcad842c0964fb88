//! Tests for MySQL and MariaDB alone, which look at the state of the server.

use cenote_sqlx::Db;
use sqlx::MySql;

use crate::world::mysql as world;

fn one() -> Db<MySql> {
    Db::mysql(world::url()).max_size(1).build().unwrap()
}

async fn number(db: &Db<MySql>, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(db).await.unwrap()
}

/// Runs a text in a scope of its own: outside a scope a text that is undone at once is refused.
async fn run(db: &Db<MySql>, sql: &'static str) {
    let run = async { sqlx::raw_sql(sql).execute(db).await };
    cenote::scope(run).await.unwrap();
}

#[tokio::test]
async fn locks_are_released_and_the_connection_is_kept() {
    const ID: &str = "SELECT CAST(CONNECTION_ID() AS SIGNED)";
    let (db, other) = (one(), one());
    run(&db, "CREATE TABLE IF NOT EXISTS cenote_locked (a INT)").await;
    let before = number(&db, ID).await;

    let lock = "SELECT GET_LOCK('cenote_left_over', 0)";
    assert_eq!(cenote::scope(number(&db, lock)).await, 1);
    assert_eq!(number(&db, ID).await, before);
    let is_free = "SELECT CAST(IS_FREE_LOCK('cenote_left_over') AS SIGNED)";
    assert_eq!(number(&other, is_free).await, 1);
    run(&db, "LOCK TABLES cenote_locked WRITE").await;
    assert_eq!(number(&db, ID).await, before);

    run(&other, "INSERT INTO cenote_locked VALUES (1)").await;
    assert_eq!(db.pool().status().opened, 1);
}

#[tokio::test]
async fn a_backup_lock_is_gone_with_its_connection() {
    let (db, other) = (one(), one());
    run(&db, "CREATE TABLE IF NOT EXISTS cenote_backup (a INT)").await;

    run(&db, "BACKUP LOCK cenote_backup").await;

    let alter = "SET lock_wait_timeout = 10; ALTER TABLE cenote_backup COMMENT 'changed'";
    run(&other, alter).await;
}

#[tokio::test]
async fn harmless_texts_keep_their_connection() {
    let db = one();
    run(
        &db,
        "CREATE TABLE IF NOT EXISTS cenote_harmless (a INT, b VARCHAR(20))",
    )
    .await;
    let before = db.pool().status().opened;
    for sql in [
        "UPDATE cenote_harmless /* c */ SET a = 1",
        "UPDATE cenote_harmless -- c\nSET a = 1",
        "SELECT -- c\nCASE WHEN 1 THEN 2 END",
        "SELECT /* c */ IF(1, 2, 3)",
        "SELECT a FROM cenote_harmless -- c\nFOR UPDATE",
        "SELECT 'x; set y', 'temporary'",
        "INSERT INTO cenote_harmless (b) VALUES ('me@x.org')",
        "SELECT /*!40001 SQL_NO_CACHE */ 1",
    ] {
        sqlx::raw_sql(sql).execute(&db).await.unwrap();
        assert_eq!(db.pool().status().opened, before, "{sql}");
        assert_eq!(number(&db, "SELECT 1").await, 1);
    }
    assert_eq!(db.pool().status().opened, before);
}

#[tokio::test]
async fn a_transaction_that_only_the_server_knows_of_is_found_before_another_begins() {
    let db = one();
    for sql in [
        "CREATE TABLE IF NOT EXISTS cenote_hidden (a INT)",
        "DELETE FROM cenote_hidden",
        "CREATE OR REPLACE PROCEDURE cenote_begins() START TRANSACTION",
    ] {
        run(&db, sql).await;
    }
    let insert = async |value: i32| {
        let insert = sqlx::query("INSERT INTO cenote_hidden VALUES (?)").bind(value);
        insert.execute(&db).await.map(drop)
    };
    for begin in [
        "CALL cenote_begins()",
        "/*!40000 BEGIN */",
        "/*!99999 SELECT */ BEGIN",
    ] {
        let work = async {
            sqlx::raw_sql(begin).execute(&db).await?;
            insert(1).await?;
            let inner = db.transaction(async || insert(2).await).await;
            let error = inner.unwrap_err().to_string();
            assert!(
                error.contains("begin it with `Db::begin`"),
                "{begin}: {error}"
            );
            sqlx::raw_sql("ROLLBACK").execute(&db).await
        };
        cenote::scope(work).await.unwrap();
        assert_eq!(
            number(&db, "SELECT count(*) FROM cenote_hidden").await,
            0,
            "{begin}"
        );
    }

    // A statement that commits by itself ends what the text began.
    let work = async {
        sqlx::raw_sql("BEGIN").execute(&db).await?;
        sqlx::raw_sql("TRUNCATE cenote_hidden").execute(&db).await?;
        db.transaction(async || insert(3).await).await
    };
    cenote::scope(work).await.unwrap();
    assert_eq!(number(&db, "SELECT count(*) FROM cenote_hidden").await, 1);
}

#[tokio::test]
async fn a_temporary_table_is_gone_with_its_connection() {
    let db = one();
    run(&db, "CREATE TEMPORARY TABLE left_over (a INT)").await;

    let read = sqlx::raw_sql("SELECT * FROM left_over").execute(&db).await;

    assert!(read.is_err());
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
async fn prepared_statements_of_the_driver_survive_transactions_and_locks() {
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
        run(&db, leave).await;
        ask().await;
    }

    assert_eq!(prepared().await, before, "nothing was prepared again");
    assert_eq!(db.pool().status().opened, 1);
}
