//! How do I use SeaORM? `cargo run -p cenote-examples --example seaorm_hello`

use cenote_sqlx::{Db, OrmError};
use futures_util::TryStreamExt;
use sea_orm::entity::prelude::*;
use sea_orm::{DbBackend, QueryOrder, Schema, Set, TransactionTrait};

/// A cake, as SeaORM wants it.
#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "cakes")]
pub struct Model {
    #[sea_orm(primary_key)]
    id: i32,
    #[sea_orm(unique)]
    name: String,
}

/// A cake belongs to nothing.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Takes the handle or a transaction, and knows nothing of cenote.
async fn bake(db: &impl ConnectionTrait, name: &str) -> Result<Model, DbErr> {
    let cake = ActiveModel {
        name: Set(name.to_owned()),
        ..Default::default()
    };
    cake.insert(db).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}/shop.db?mode=rwc", folder.path().display());
    let db = Db::sqlite(url).build()?; // no connection yet
    let create = Schema::new(DbBackend::Sqlite).create_table_from_entity(Entity);
    db.execute(&create).await?;

    // Every `&db` inside is part of the transaction.
    db.transaction(async || {
        bake(&db, "apple").await?;
        bake(&db, "cheese").await?;
        Ok::<_, OrmError>(())
    })
    .await?;
    let twice = db.transaction(async || {
        bake(&db, "lemon").await?;
        bake(&db, "apple").await?;
        Ok::<_, OrmError>(())
    });
    let Err(OrmError(twice)) = twice.await else {
        return Err("two apple cakes".into());
    };
    println!("the lemon cake was rolled back: {:?}", twice.sql_err());

    // SeaORM's own transactions work, too. A nested one is a savepoint.
    let outer = TransactionTrait::begin(&db).await?;
    bake(&outer, "poppy").await?;
    let inner = outer.begin().await?;
    bake(&inner, "burnt").await?;
    inner.rollback().await?;
    outer.commit().await?;

    let mut cakes = Vec::new();
    let mut rows = Entity::find()
        .order_by_asc(Column::Name)
        .stream(&db)
        .await?;
    while let Some(cake) = rows.try_next().await? {
        println!("cake {}: {}", cake.id, cake.name);
        cakes.push(cake.name);
    }
    assert_eq!(cakes, ["apple", "cheese", "poppy"]);
    assert_eq!(db.pool().status().in_use, 0); // the stream was read to its end
    Ok(())
}
