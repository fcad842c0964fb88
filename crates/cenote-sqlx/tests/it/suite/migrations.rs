//! Migrations with sqlx's migrator.

use sqlx::migrate::Migrator;
use tempfile::TempDir;

use super::Rig;

/// Returns migrations that create a table, in a folder, with their own table of applied migrations.
async fn migrations(rig: &Rig, then: &str) -> (Migrator, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let create = "CREATE TABLE {}_made (id INTEGER PRIMARY KEY)";
    for (file, sql) in [
        ("1_create.sql", create),
        ("2_fill.sql", "INSERT INTO {}_made VALUES (815)"),
        ("3_then.sql", then),
    ] {
        let sql = sql.replace("{}", &rig.table);
        std::fs::write(folder.path().join(file), sql).unwrap();
    }
    let mut migrator = Migrator::new(folder.path()).await.unwrap();
    migrator.dangerous_set_table_name(format!("{}_run", rig.table));
    (migrator, folder)
}

async fn rig(name: &str) -> Rig {
    let rig = Rig::new(name).await;
    rig.run("DROP TABLE IF EXISTS {}_made").await;
    rig.run("DROP TABLE IF EXISTS {}_run").await;
    rig
}

async fn made(rig: &Rig) -> Vec<i32> {
    let sql = rig.sql("SELECT id FROM {}_made ORDER BY id");
    sqlx::query_scalar(sql).fetch_all(&rig.db).await.unwrap()
}

const MORE: &str = "INSERT INTO {}_made VALUES (816)";

#[tokio::test]
async fn a_migration_runs_on_the_handle_once() {
    let rig = rig("migrated").await;
    let (migrator, _folder) = migrations(&rig, MORE).await;

    for _ in 0..2 {
        migrator.run(&rig.db).await.unwrap();
    }

    assert_eq!(made(&rig).await, [815, 816]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_migration_runs_on_a_lease_once() {
    let rig = rig("migrated_lease").await;
    let (migrator, _folder) = migrations(&rig, MORE).await;

    let mut lease = rig.db.acquire().await.unwrap();
    for _ in 0..2 {
        migrator.run(&mut lease).await.unwrap();
    }
    drop(lease);

    assert_eq!(made(&rig).await, [815, 816]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn a_migration_that_fails_is_an_error_and_leaves_a_clean_pool() {
    let rig = rig("migrated_badly").await;
    let (migrator, folder) = migrations(&rig, "INSERT INTO {}_made VALUES (815)").await;

    let error = migrator.run(&rig.db).await.unwrap_err();

    assert!(error.to_string().contains('3'), "{error}");
    assert_eq!(
        made(&rig).await,
        [815],
        "the migrations before it were applied"
    );
    rig.assert_clean().await;
    drop(folder);
    if super::world::TRANSACTIONAL {
        let (migrator, _folder) = migrations(&rig, MORE).await;
        migrator.run(&rig.db).await.unwrap();
        assert_eq!(made(&rig).await, [815, 816], "after the fix it is applied");
    }
}

#[tokio::test]
async fn two_migrators_at_the_same_time_migrate_once() {
    let rig = rig("migrated_twice").await;
    let (migrator, _folder) = migrations(&rig, MORE).await;

    let (one, other) = tokio::join!(migrator.run(&rig.db), migrator.run(&rig.db));

    if super::world::MIGRATION_LOCK {
        one.unwrap();
        other.unwrap();
    } else {
        // One of them may find the migrations half applied, which is an error.
        assert!(one.is_ok() || other.is_ok(), "{one:?} {other:?}");
        migrator.run(&rig.db).await.unwrap();
    }
    assert_eq!(made(&rig).await, [815, 816]);
    rig.assert_clean().await;
}
