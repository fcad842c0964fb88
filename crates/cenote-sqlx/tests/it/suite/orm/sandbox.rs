//! SeaORM in a sandbox: the application under test needs no change.

use cenote_sqlx::OrmError;
use futures_util::TryStreamExt;
use sea_orm::{EntityTrait, SqlErr, TransactionTrait};

use super::{Db, Rig, world};
use crate::bakery::{bake, cake, cakes, day};

const NONE: [&str; 0] = [];

#[tokio::test]
async fn entities_in_a_sandbox_are_rolled_back_with_it() {
    let rig = Rig::new("box").await;
    let url = world::inside(&rig.home, &rig.schema);
    let db = Db::sandbox(url).await.unwrap();

    day(&db).await.unwrap();
    let kept = TransactionTrait::begin(&db).await.unwrap();
    bake(&kept, "c").await.unwrap();
    kept.commit().await.unwrap();
    drop(TransactionTrait::begin(&db).await.unwrap());
    let lost = db.transaction(async || {
        bake(&db, "d").await?;
        bake(&db, "c").await?;
        Ok::<_, OrmError>(())
    });
    let lost = lost.await.unwrap_err().0;
    let unique = matches!(lost.sql_err(), Some(SqlErr::UniqueConstraintViolation(_)));
    assert!(unique, "{lost:?}");
    let rows = cake::Entity::find().stream(&db).await.unwrap();
    let rows: Vec<cake::Model> = rows.try_collect().await.unwrap();
    let task = db.clone();
    tokio::spawn(async move { bake(&task, "e").await.unwrap() })
        .await
        .unwrap();

    assert_eq!(rows.len(), 3);
    assert_eq!(cakes(&db).await.unwrap(), ["b", "c", "e", "z"]);
    drop(db);
    assert_eq!(rig.cakes().await, NONE, "nothing was committed");
}
