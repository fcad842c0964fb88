//! A lease is a connection: diesel's own functions take it.

use cenote::Lease;
use cenote_diesel::Diesel;
use cenote_diesel::diesel::result::Error;
use cenote_diesel::diesel::{self, ConnectionError, ExpressionMethods, QueryDsl, QueryResult};
use cenote_diesel::diesel_async::{
    AsyncConnection, AsyncMysqlConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection,
};

use crate::pool;
use crate::world::{My, Pg, World};

diesel::table! {
    t (a) {
        a -> Integer,
    }
}

/// Queries have other types on each backend, so this is no generic function.
macro_rules! a_lease_is_a_connection {
    ($($name:ident: $World:ident),*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let world = crate::world::$World::new(stringify!($name)).await;
            let pool = world.pool(1);
            let mut lease = pool.acquire().await.unwrap();

            let insert = diesel::insert_into(t::table).values(t::a.eq(1));
            assert_eq!(insert.execute(&mut lease).await, Ok(1));
            let work = lease.transaction::<i32, Error, _>(async |lease| {
                let change = diesel::update(t::table).set(t::a.eq(t::a + 1));
                assert_eq!(change.execute(lease).await, Ok(1));
                let inner = lease.transaction::<(), Error, _>(async |lease| {
                    diesel::delete(t::table).execute(lease).await?;
                    Err(Error::RollbackTransaction)
                });
                assert!(inner.await.is_err());
                t::table.select(t::a).first(lease).await
            });

            assert_eq!(work.await, Ok(2));
            let all: Vec<i32> = t::table.select(t::a).load(&mut lease).await.unwrap();
            assert_eq!(all, [2]);
            drop(lease);
            assert_eq!(pool.status().idle, 1, "nothing to clean");
        }
    )*};
}

a_lease_is_a_connection!(
    a_lease_is_a_connection_of_postgres: Pg,
    a_lease_is_a_connection_of_mysql: My,
    a_lease_is_a_connection_of_sqlite: Lite
);

async fn of_the_connection(connection: &mut AsyncPgConnection) -> QueryResult<i64> {
    t::table.count().get_result(connection).await
}

async fn of_a_lease(lease: &mut Lease<Diesel<AsyncPgConnection>>) -> QueryResult<i64> {
    of_the_connection(lease).await
}

#[tokio::test]
async fn functions_of_the_connection_take_a_lease() {
    let world = Pg::new("pg_functions").await;
    let mut lease = world.pool(1).acquire().await.unwrap();

    assert_eq!(of_a_lease(&mut lease).await, Ok(0));
    let mut read_only = lease.build_transaction().read_only();
    let refused = read_only.run::<_, Error, _>(async |connection| {
        connection.batch_execute("insert into t values (1)").await
    });

    assert!(refused.await.is_err());
}

#[tokio::test]
async fn statements_of_one_lease_can_be_sent_together() {
    let world = Pg::new("pg_together").await;
    let pool = world.pool(1);
    let lease = pool.acquire().await.unwrap();
    let (mut one, mut two) = (&*lease, &*lease);

    let (first, second) = tokio::join!(
        diesel::sql_query("select pg_sleep(0.01)").execute(&mut one),
        t::table.count().get_result::<i64>(&mut two),
    );

    assert_eq!((first, second), (Ok(1), Ok(0)));
    drop(lease);
    assert_eq!(pool.status().idle, 1, "nothing to clean");
}

#[tokio::test]
async fn a_connection_is_opened_as_the_user_says() {
    let world = My::new("my_setup").await;
    let manager = world.manager().custom_setup(|url| {
        Box::pin(async move {
            let mut connection = AsyncMysqlConnection::establish(url).await?;
            let set = connection.batch_execute("set @a = 7").await;
            set.map_err(ConnectionError::CouldntSetupConfiguration)?;
            Ok(connection)
        })
    });
    let pool = pool(manager, 1);

    for _ in 0..2 {
        let mut lease = pool.acquire().await.unwrap();
        let a = diesel::select(diesel::dsl::sql::<diesel::sql_types::BigInt>("@a"));
        assert_eq!(a.get_result::<i64>(&mut lease).await, Ok(7));
    }
    assert_eq!(pool.status().opened, 1, "the setup changes no session");
}
