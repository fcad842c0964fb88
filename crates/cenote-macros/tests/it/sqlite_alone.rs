//! A transactional function and a foreign writer, on SQLite.

use std::sync::Arc;
use std::time::Duration;

use cenote_sqlx::{Retry, transactional};

use crate::world::Done;
use crate::world::sqlite::{Db, builder};

fn eager() -> Retry {
    Retry {
        attempts: 10_000,
        longest_rest: Duration::from_millis(5),
        ..Retry::default()
    }
}

#[transactional(db, retry = eager())]
async fn write(db: Arc<Db>) -> Done {
    let insert = sqlx::query("INSERT INTO t VALUES (2)");
    insert.execute(&*db).await.map(drop)
}

#[tokio::test]
async fn a_function_that_meets_a_busy_database_is_tried_again() {
    let (foreign, home) = builder();
    let foreign = foreign.build().unwrap();
    let create = sqlx::query("CREATE TABLE t (a INTEGER)");
    create.execute(&foreign).await.unwrap();
    let url = format!("sqlite://{}", home.path().join("test.db").display());
    let db = Db::sqlite(url).setting("PRAGMA busy_timeout = 0");
    let db = Arc::new(db.build().unwrap());
    let mut held = foreign.begin().await.unwrap();
    let insert = sqlx::query("INSERT INTO t VALUES (1)");
    insert.execute(&mut held).await.unwrap();

    let writing = tokio::spawn(write(db.clone()));
    // The lock is real, so the test waits in real time.
    let tried = tokio::time::timeout(Duration::from_secs(20), async {
        while db.pool().status().acquired < 5 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    tried.await.expect("the function is tried again and again");
    held.commit().await.unwrap();

    writing.await.unwrap().unwrap();
    let read = sqlx::query_scalar::<_, i64>("SELECT a FROM t ORDER BY a");
    assert_eq!(read.fetch_all(&*db).await.unwrap(), [1, 2]);
}
