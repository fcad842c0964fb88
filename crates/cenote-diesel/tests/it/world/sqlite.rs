//! A file of SQLite for each test, by diesel-async's wrapper.

use cenote_diesel::Diesel;
use cenote_diesel::diesel::sql_types::Integer;
use cenote_diesel::diesel::{self, SqliteConnection, dsl::sql};
use cenote_diesel::diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use cenote_diesel::diesel_async::{AsyncConnection, RunQueryDsl, SimpleAsyncConnection};
use tempfile::TempDir;

use super::World;

type Wrapper = SyncConnectionWrapper<SqliteConnection>;

pub(crate) struct Lite {
    folder: TempDir,
}

impl Lite {
    pub(crate) fn file(&self) -> String {
        let file = self.folder.path().join("db");
        file.to_string_lossy().into_owned()
    }

    async fn own(&self) -> Wrapper {
        let mut own = Wrapper::establish(&self.file()).await.unwrap();
        let patience = "pragma busy_timeout = 30000";
        own.batch_execute(patience).await.unwrap();
        own
    }
}

impl World for Lite {
    type C = Wrapper;

    async fn new(_: &str) -> Self {
        let world = Self {
            folder: TempDir::new().unwrap(),
        };
        let make = "pragma journal_mode = wal; create table t (a int)";
        world.own().await.batch_execute(make).await.unwrap();
        world
    }

    fn manager(&self) -> Diesel<Wrapper> {
        Diesel::new(self.file())
    }

    async fn rows(&self) -> Vec<i32> {
        let query = diesel::select(sql::<Integer>("a from t order by a"));
        query.load(&mut self.own().await).await.unwrap()
    }

    /// SQLite refuses a transaction inside another.
    async fn is_open(connection: &mut Wrapper) -> bool {
        connection.batch_execute("begin; rollback").await.is_err()
    }

    async fn echo(connection: &mut Wrapper, number: i32) -> i32 {
        let query = diesel::select(diesel::IntoSql::into_sql::<Integer>(number));
        query.get_result(connection).await.unwrap()
    }
}
