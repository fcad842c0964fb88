//! The attribute `test`, on every database.

use cenote_sqlx::Db;

use crate::world;

/// Writes the tests of one database.
macro_rules! on {
    ($database:ident, $kind:ty, $url:expr) => {
        mod $database {
            use super::*;

            #[cenote_sqlx::test(
                                                                url = $url,
                                                                migrations = "tests/it/migrations",
                                                                fixtures("people")
                                                            )]
            async fn a_test_has_its_migrations_and_fixtures(db: Db<$kind>) {
                assert_eq!(count(&db).await, 2);

                let add = "INSERT INTO people VALUES (3, 'Barbara')";
                let added = db.transaction(async || sqlx::query(add).execute(&db).await);
                added.await.unwrap();

                assert_eq!(count(&db).await, 3);
            }

            #[cenote_sqlx::test(url = $url, migrations = "tests/it/migrations")]
            async fn no_test_sees_the_rows_of_another(db: Db<$kind>) -> Result<(), sqlx::Error> {
                assert_eq!(count(&db).await, 0);
                let add = "INSERT INTO people VALUES (3, 'Barbara')";
                sqlx::query(add).execute(&db).await?;
                Ok(())
            }

            #[cenote_sqlx::test(url = $url)]
            #[should_panic(expected = "as it should")]
            async fn a_test_may_panic(db: Db<$kind>) {
                let _ = db.begin().await.unwrap();
                panic!("as it should");
            }

            #[cenote_sqlx::test(
                                                                url = $url,
                                                                migrations = "tests/it/migrations",
                                                                fixtures("people"),
                                                                isolated
                                                            )]
            async fn an_isolated_test_may_commit_and_use_several_connections(db: Db<$kind>) {
                sqlx::query("CREATE TABLE pets (id INTEGER)")
                    .execute(&db)
                    .await
                    .unwrap();
                let (mut one, mut two) = (db.acquire().await.unwrap(), db.acquire().await.unwrap());
                sqlx::query("INSERT INTO pets VALUES (1)")
                    .execute(&mut one)
                    .await
                    .unwrap();

                let seen = sqlx::query("SELECT id FROM pets").fetch_all(&mut two).await;

                assert_eq!(seen.unwrap().len(), 1);
                assert_eq!(count(&db).await, 2);
            }
        }
    };
}

async fn count<DB>(db: &Db<DB>) -> usize
where
    DB: cenote_sqlx::Dialect,
    DB::Arguments: sqlx::IntoArguments<DB>,
{
    let people = sqlx::query("SELECT id FROM people").fetch_all(db).await;
    people.unwrap().len()
}

on!(postgres, sqlx::Postgres, world::postgres::url());
on!(mysql, sqlx::MySql, world::mysql::url());
on!(sqlite, sqlx::Sqlite, sqlite_url());

#[cenote_sqlx::test(
    url = "sqlite::memory:",
    migrations = "tests/it/migrations",
    fixtures("people")
)]
async fn a_database_in_memory_has_its_migrations_and_fixtures(db: Db<sqlx::Sqlite>) {
    assert_eq!(count(&db).await, 2);
}

/// One file for all tests, as a project has one.
fn sqlite_url() -> String {
    let file = std::env::temp_dir().join("cenote-attribute.db");
    format!("sqlite://{}?mode=rwc", file.display())
}
