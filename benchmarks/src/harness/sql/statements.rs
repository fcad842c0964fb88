//! The statements. All pools send the same prepared text. Pools on sqlx's drivers use the same
//! functions.

/// The cheapest statement.
pub const ONE: &str = "SELECT 1";
/// Reads a row by its key.
pub const READ: &str = "SELECT amount FROM amounts WHERE id = $1";
/// Changes a row by its key.
pub const UPDATE: &str = "UPDATE amounts SET amount = amount + 1 WHERE id = $1";

/// The table.
pub(super) const CREATE: &str =
    "CREATE TABLE amounts (id INTEGER PRIMARY KEY, amount INTEGER NOT NULL)";
/// Inserts [`ROWS`](super::ROWS) rows.
pub(super) const FILL: &str = "INSERT INTO amounts WITH RECURSIVE n (n) AS \
    (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1000) SELECT n, 0 FROM n";

macro_rules! by_driver {
    ($(#[$doc:meta])* $module:ident, $executor:ident) => {
        $(#[$doc])*
        pub mod $module {
            use sqlx::$executor;

            /// `SELECT 1`.
            pub async fn one<'e>(executor: impl $executor<'e>) {
                let one = sqlx::query_scalar::<_, i32>(super::ONE).fetch_one(executor);
                assert_eq!(one.await.expect("a statement succeeds"), 1);
            }

            /// Reads that row.
            pub async fn read<'e>(executor: impl $executor<'e>, id: i32) {
                let row = sqlx::query_scalar::<_, i32>(super::READ).bind(id);
                row.fetch_one(executor).await.expect("a read succeeds");
            }

            /// Changes that row.
            pub async fn update<'e>(executor: impl $executor<'e>, id: i32) {
                let change = sqlx::query(super::UPDATE).bind(id).execute(executor);
                let changed = change.await.expect("an update succeeds");
                assert_eq!(changed.rows_affected(), 1);
            }
        }
    };
}

by_driver!(
    /// On PostgreSQL.
    postgres,
    PgExecutor
);
by_driver!(
    /// On SQLite.
    sqlite,
    SqliteExecutor
);

/// Implements the three statements of a [`SqlPeer`](super::SqlPeer) whose field `0` is an executor
/// of sqlx.
macro_rules! statements_of {
    ($module:ident) => {
        async fn one(&self) {
            crate::harness::sql::statements::$module::one(&self.0).await;
        }

        async fn read(&self, id: i32) {
            crate::harness::sql::statements::$module::read(&self.0, id).await;
        }

        async fn update(&self, id: i32) {
            crate::harness::sql::statements::$module::update(&self.0, id).await;
        }
    };
}

/// Runs each statement once on this connection, an executor of sqlx as `&mut`, so that it is
/// prepared.
macro_rules! prepare_on {
    ($module:ident, $connection:expr) => {
        crate::harness::sql::statements::$module::one(&mut *$connection).await;
        crate::harness::sql::statements::$module::read(&mut *$connection, 1).await;
        crate::harness::sql::statements::$module::update(&mut *$connection, 1).await;
    };
}

pub(crate) use {prepare_on, statements_of};
