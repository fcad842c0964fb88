//! SeaORM's migrations, which need its own type: through a part of the connections.

use sea_orm::{ConnectionTrait, DatabaseConnection};
use sea_orm_migration::prelude::*;

use super::Rig;

struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(Shelves), Box::new(Width)]
    }
}

struct Shelves;

impl MigrationName for Shelves {
    fn name(&self) -> &str {
        "m1_shelves"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Shelves {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let id = ColumnDef::new("id").integer().primary_key().take();
        let table = Table::create().table("shelves").col(id).take();
        manager.create_table(table).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let table = Table::drop().table("shelves").take();
        manager.drop_table(table).await
    }
}

struct Width;

impl MigrationName for Width {
    fn name(&self) -> &str {
        "m2_width"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Width {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let width = ColumnDef::new("width").integer().take();
        let table = Table::alter().table("shelves").add_column(width).take();
        manager.alter_table(table).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let table = Table::alter().table("shelves").drop_column("width").take();
        manager.alter_table(table).await
    }
}

#[tokio::test]
async fn a_migrator_runs_on_a_part_of_the_connections() {
    let rig = Rig::empty("migrations", |builder| builder).await;
    let insert = "INSERT INTO shelves (id, width) VALUES (1, 80)";

    let pool = rig.db.sqlx_pool(1).await.unwrap();
    let connection = DatabaseConnection::from(pool.clone());
    for _ in 0..2 {
        Migrator::up(&connection, None).await.unwrap();
    }
    rig.db.execute_unprepared(insert).await.unwrap();
    let applied = Migrator::get_applied_migrations(&rig.db).await.unwrap();
    Migrator::down(&connection, Some(1)).await.unwrap();
    pool.close().await;

    assert_eq!(applied.len(), 2, "the handle reads what was applied");
    let pending = Migrator::get_pending_migrations(&rig.db).await.unwrap();
    assert_eq!(pending[0].name(), "m2_width");
    assert!(rig.db.execute_unprepared(insert).await.is_err(), "no width");
    assert_eq!(rig.db.pool().status().in_use, 0);
}
