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

async fn run(db: &Db<MySql>, sql: &'static str) {
    sqlx::raw_sql(sql).execute(db).await.unwrap();
}

#[tokio::test]
async fn locks_are_released_and_the_connection_is_kept() {
    const ID: &str = "SELECT CAST(CONNECTION_ID() AS SIGNED)";
    let (db, other) = (one(), one());
    run(&db, "CREATE TABLE IF NOT EXISTS cenote_locked (a INT)").await;
    let before = number(&db, ID).await;

    assert_eq!(
        number(&db, "SELECT GET_LOCK('cenote_left_over', 0)").await,
        1
    );
    assert_eq!(number(&db, ID).await, before);
    let is_free = "SELECT CAST(IS_FREE_LOCK('cenote_left_over') AS SIGNED)";
    assert_eq!(number(&other, is_free).await, 1);
    run(&db, "LOCK TABLES cenote_locked WRITE").await;
    assert_eq!(number(&db, ID).await, before);

    run(&other, "INSERT INTO cenote_locked VALUES (1)").await;
    assert_eq!(db.pool().status().opened, 1);
}

#[tokio::test]
async fn a_temporary_table_is_gone_with_its_connection() {
    let db = one();
    let create = sqlx::raw_sql("CREATE TEMPORARY TABLE left_over (a INT)");
    create.execute(&db).await.unwrap();

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
        sqlx::raw_sql(leave).execute(&db).await.unwrap();
        ask().await;
    }

    assert_eq!(prepared().await, before, "nothing was prepared again");
    assert_eq!(db.pool().status().opened, 1);
}
