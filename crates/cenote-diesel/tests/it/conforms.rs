//! The public conformance suite for managers.

use std::path::PathBuf;

use cenote::Manager as _;
use cenote_diesel::Blocking;
use cenote_diesel::BlockingConnection;
use cenote_diesel::diesel::SqliteConnection;
use cenote_diesel::diesel::connection::{
    AnsiTransactionManager as Ansi, SimpleConnection, TransactionManager as _,
};
use cenote_diesel::diesel_async::{AsyncMysqlConnection, AsyncPgConnection, SimpleAsyncConnection};
use cenote_testkit::conformance::Conformance;
use tokio::sync::Mutex;

use crate::times_open;
use crate::world::mysql::session;
use crate::world::postgres::backend;
use crate::world::{Lite, My, Pg, World};

async fn postgres(name: &str) -> Conformance<cenote_diesel::Diesel<AsyncPgConnection>> {
    let world = Pg::new(name).await;
    let admin = Mutex::new(world.admin().await);
    Conformance::new(world.manager())
        .kill(async move |connection: &mut AsyncPgConnection| {
            let id = backend(connection).await;
            admin.lock().await.kill(id).await;
        })
        .count(async move || usize::try_from(world.sessions().await.0).unwrap())
}

#[tokio::test]
async fn postgres_conforms_with_open_transactions() {
    let suite = postgres("pg_conforms_open").await;

    let suite = suite.dirty(
        async |connection: &mut AsyncPgConnection| {
            connection.batch_execute("begin").await.unwrap();
        },
        async |connection: &mut AsyncPgConnection| Pg::is_open(connection).await,
    );

    suite.run().await;
}

#[tokio::test]
async fn postgres_conforms_with_changed_sessions() {
    let suite = postgres("pg_conforms_changed").await;
    let is_there = "insert into changed values (1)";

    let suite = suite.dirty(
        async |connection: &mut AsyncPgConnection| {
            let change = "create temp table changed (a int)";
            connection.batch_execute(change).await.unwrap();
        },
        async move |connection: &mut AsyncPgConnection| {
            connection.batch_execute(is_there).await.is_ok()
        },
    );

    suite.run().await;
}

#[tokio::test]
async fn mysql_conforms() {
    let world = My::new("my_conforms").await;
    let admin = Mutex::new(world.admin().await);

    let suite = Conformance::new(world.manager())
        .kill(async move |connection: &mut AsyncMysqlConnection| {
            let id = session(connection).await;
            admin.lock().await.kill(id).await;
            // The driver notices when it is used.
            assert!(connection.batch_execute("select 1").await.is_err());
        })
        .dirty(
            async |connection: &mut AsyncMysqlConnection| {
                connection.batch_execute("begin").await.unwrap();
            },
            async |connection: &mut AsyncMysqlConnection| My::is_open(connection).await,
        )
        .count(async move || usize::try_from(world.sessions().await.0).unwrap());

    suite.run().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_wrapper_of_sqlite_conforms() {
    type Wrapper = <Lite as World>::C;
    let world = Lite::new("").await;
    let file = PathBuf::from(world.file());

    let suite = Conformance::new(world.manager())
        .dirty(
            async |connection: &mut Wrapper| connection.batch_execute("begin").await.unwrap(),
            async |connection: &mut Wrapper| Lite::is_open(connection).await,
        )
        .count(async move || times_open(&file));

    suite.run().await;
}

#[tokio::test]
async fn blocking_connections_conform() {
    let world = Lite::new("").await;
    let file = PathBuf::from(world.file());
    let manager = Blocking::<SqliteConnection>::new(world.file());
    assert!(manager.open().await.is_ok());

    let suite = Conformance::new(manager)
        .dirty(
            async |resource: &mut BlockingConnection<SqliteConnection>| {
                let begin = resource.run(Ansi::begin_transaction);
                begin.await.unwrap();
            },
            async |resource: &mut BlockingConnection<SqliteConnection>| {
                let asked = resource.run(|connection| connection.batch_execute("begin; rollback"));
                asked.await.is_err()
            },
        )
        .count(async move || times_open(&file));

    suite.run().await;
}
