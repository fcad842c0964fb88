//! Run: cargo run -p cenote-examples --example sql_one_writer
//!
//! How do many readers and writers share one SQLite file?
//!
//! Writers wait for each other, in order. Readers do not wait.

use std::error::Error;

use cenote_sqlx::{Db, TransactionOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}/log.db?mode=rwc", folder.path().display());
    let db = Db::sqlite(url).max_size(4).build()?;
    sqlx::query("CREATE TABLE log (line INTEGER)")
        .execute(&db)
        .await?;
    let lines = || sqlx::query_scalar::<_, i64>("SELECT count(*) FROM log").fetch_one(&db);

    // One writer, with a transaction that stays open for a while.
    let mut writing = db.begin().await?;
    sqlx::query("INSERT INTO log VALUES (1)")
        .execute(&mut writing)
        .await?;
    println!("while one writes, a reader sees {} lines", lines().await?);
    assert_eq!(lines().await?, 0);
    writing.commit().await?;

    // Twenty writers at once: none of them gets `database is locked`.
    let mut writers = Vec::new();
    for line in 0..20 {
        let db = db.clone();
        writers.push(tokio::spawn(async move {
            let insert = sqlx::query("INSERT INTO log VALUES (?)");
            insert.bind(line).execute(&db).await
        }));
    }
    for writer in writers {
        writer.await??;
    }
    println!("and then {} lines", lines().await?);
    assert_eq!(lines().await?, 21);

    // Two reads of one state, which do not wait for writers.
    let twice = TransactionOptions::new().read_only();
    let (first, second) = db
        .transaction_with(twice, async || {
            Ok::<_, sqlx::Error>((lines().await?, lines().await?))
        })
        .await?;
    assert_eq!(first, second);
    Ok(())
}
