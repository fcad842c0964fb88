//! Run: cargo run -p cenote-examples --example sql_hello
//!
//! How do I use a database?

use std::error::Error;

use cenote_sqlx::Db;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}/list.db?mode=rwc", folder.path().display());
    let db = Db::sqlite(url).max_size(4).build()?;
    sqlx::query("CREATE TABLE things (id INTEGER PRIMARY KEY, text TEXT NOT NULL, done BOOL NOT NULL DEFAULT 0)")
        .execute(&db)
        .await?;

    for text in ["buy bread", "call Ada", "sleep"] {
        let insert = sqlx::query("INSERT INTO things (text) VALUES (?)");
        insert.bind(text).execute(&db).await?;
    }
    let done = sqlx::query("UPDATE things SET done = 1 WHERE text = ?");
    assert_eq!(done.bind("call Ada").execute(&db).await?.rows_affected(), 1);

    let things: Vec<(String, bool)> = sqlx::query_as("SELECT text, done FROM things ORDER BY id")
        .fetch_all(&db)
        .await?;
    for (text, done) in &things {
        println!("[{}] {text}", if *done { "x" } else { " " });
    }
    assert_eq!(things[1], ("call Ada".to_owned(), true));
    Ok(())
}
