//! Entities of SeaORM, and a program that is generic over its connection.

use futures_util::TryStreamExt;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel,
    ModelTrait, PaginatorTrait, QueryFilter, QueryOrder, Schema, Set, StreamTrait,
};

#[expect(unreachable_pub, reason = "the derives ask for it")]
pub(crate) mod cake {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "cakes")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        #[sea_orm(unique)]
        pub name: String,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {
        #[sea_orm(has_many = "super::fruit::Entity")]
        Fruit,
    }

    impl Related<super::fruit::Entity> for Entity {
        fn to() -> RelationDef {
            Relation::Fruit.def()
        }
    }

    impl ActiveModelBehavior for ActiveModel {}
}

#[expect(unreachable_pub, reason = "the derives ask for it")]
pub(crate) mod fruit {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "fruits")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        pub name: String,
        pub cake_id: Option<i32>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {
        #[sea_orm(
            belongs_to = "super::cake::Entity",
            from = "Column::CakeId",
            to = "super::cake::Column::Id"
        )]
        Cake,
    }

    impl Related<super::cake::Entity> for Entity {
        fn to() -> RelationDef {
            Relation::Cake.def()
        }
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Creates the tables.
pub(crate) async fn build<C: ConnectionTrait>(db: &C) -> Result<(), DbErr> {
    let schema = Schema::new(db.get_database_backend());
    db.execute(&schema.create_table_from_entity(cake::Entity))
        .await?;
    db.execute(&schema.create_table_from_entity(fruit::Entity))
        .await?;
    Ok(())
}

pub(crate) async fn bake<C: ConnectionTrait>(db: &C, name: &str) -> Result<cake::Model, DbErr> {
    let cake = cake::ActiveModel {
        name: Set(name.to_owned()),
        ..Default::default()
    };
    cake.insert(db).await
}

/// Puts a fruit on the cake with this id.
pub(crate) async fn top<C: ConnectionTrait>(db: &C, cake: i32) -> Result<fruit::Model, DbErr> {
    let fruit = fruit::ActiveModel {
        name: Set("cherry".to_owned()),
        cake_id: Set(Some(cake)),
        ..Default::default()
    };
    fruit.insert(db).await
}

/// Returns the names of all cakes in order.
pub(crate) async fn cakes<C: ConnectionTrait>(db: &C) -> Result<Vec<String>, DbErr> {
    let cakes = cake::Entity::find().order_by_asc(cake::Column::Name);
    Ok(cakes
        .all(db)
        .await?
        .into_iter()
        .map(|cake| cake.name)
        .collect())
}

/// Uses the methods of SeaORM that need a connection. Leaves the cakes `b` and `z`.
pub(crate) async fn day<C: ConnectionTrait + StreamTrait>(db: &C) -> Result<(), DbErr> {
    let first = bake(db, "a").await?;
    let many = ["b", "c", "d", "e"].map(|name| cake::ActiveModel {
        name: Set(name.to_owned()),
        ..Default::default()
    });
    cake::Entity::insert_many(many).exec(db).await?;
    let found = cake::Entity::find_by_id(first.id).one(db).await?;
    assert_eq!(found.as_ref(), Some(&first));
    let missing = cake::Entity::find()
        .filter(cake::Column::Name.eq("nothing"))
        .one(db);
    assert_eq!(missing.await?, None);

    let topped = top(db, first.id).await?;
    let pairs = cake::Entity::find().find_with_related(fruit::Entity);
    let pairs = pairs.order_by_asc(cake::Column::Name).all(db).await?;
    assert_eq!(pairs[0], (first.clone(), vec![topped.clone()]));
    assert!(pairs[1].1.is_empty());

    let pages = cake::Entity::find()
        .order_by_asc(cake::Column::Name)
        .paginate(db, 2);
    assert_eq!((pages.num_items().await?, pages.num_pages().await?), (5, 3));
    assert_eq!(pages.fetch_page(2).await?[0].name, "e");

    let rows = cake::Entity::find().order_by_desc(cake::Column::Name);
    let rows: Vec<cake::Model> = rows.stream(db).await?.try_collect().await?;
    let names: Vec<&str> = rows.iter().map(|cake| &*cake.name).collect();
    assert_eq!(names, ["e", "d", "c", "b", "a"]);
    let empty = cake::Entity::find().filter(cake::Column::Id.lt(0));
    let empty: Vec<cake::Model> = empty.stream(db).await?.try_collect().await?;
    assert!(empty.is_empty());

    let mut renamed = first.into_active_model();
    renamed.name = Set("z".to_owned());
    let renamed = renamed.update(db).await?;
    assert_eq!(renamed.name, "z");
    topped.delete(db).await?;
    let gone = cake::Entity::delete_many().filter(cake::Column::Name.is_in(["c", "d", "e"]));
    assert_eq!(gone.exec(db).await?.rows_affected, 3);
    assert_eq!(cakes(db).await?, ["b", "z"]);
    Ok(())
}
