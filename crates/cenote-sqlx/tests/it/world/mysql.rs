//! MySQL and MariaDB for the suite.

use std::sync::OnceLock;

use cenote_servers::{Found, Server, Setting};
use cenote_sqlx::Builder;
use sqlx::Connection;

pub(crate) type DB = sqlx::MySql;
pub(crate) type Db = cenote_sqlx::Db<DB>;

const PLAIN: &str = "ssl-mode=disabled";

/// A server needs no files that live as long as the test.
pub(crate) type Home = ();

/// Without TLS, which has tests of its own.
pub(crate) fn url() -> String {
    static FOUND: OnceLock<Found> = OnceLock::new();
    static URL: OnceLock<String> = OnceLock::new();
    let server = super::server(&FOUND, cenote_servers::mariadb::find);
    let url = URL.get_or_init(|| with_database(server));
    super::with_parameter(url, PLAIN)
}

/// Creates a database if the URL names none.
fn with_database(server: &'static str) -> String {
    let (_, address) = server.split_once("://").expect("a URL has a scheme");
    let path = address.split_once('/').map_or("", |(_, path)| path);
    if !path.is_empty() {
        return server.to_owned();
    }
    let create = async move {
        let mut connection = sqlx::MySqlConnection::connect(server).await.unwrap();
        let sql = "CREATE DATABASE IF NOT EXISTS cenote_test";
        sqlx::query(sql).execute(&mut connection).await.unwrap();
    };
    // On another thread, because the caller may be inside a runtime.
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
    };
    let created = std::thread::spawn(move || runtime().unwrap().block_on(create));
    created.join().expect("a database can be created");
    format!("{}/cenote_test", server.trim_end_matches('/'))
}

pub(crate) fn url_at((): &Home) -> String {
    url()
}

pub(crate) fn builder() -> (Builder<DB>, Home) {
    (Db::mysql(url()), ())
}

/// A builder with more parameters in its URL.
pub(crate) fn builder_with(parameters: &str) -> (Builder<DB>, Home) {
    (Db::mysql(super::with_parameter(&url(), parameters)), ())
}

/// Returns the URL of a schema, which need not exist yet.
#[cfg(feature = "sea-orm")]
pub(crate) fn inside((): &Home, schema: &str) -> String {
    marked(&url(), schema)
}

/// Statements that make an empty schema.
#[cfg(feature = "sea-orm")]
pub(crate) const FRESH: &[&str] = &[DROP, "CREATE SCHEMA {}"];

/// Starts a private server, which a test may stop, kill or fill.
pub(crate) fn start(settings: &[Setting<'_>]) -> Server {
    cenote_servers::mariadb::start_with(settings).unwrap()
}

/// Returns the URL for sessions that the server shows under this mark, which is an existing schema.
pub(crate) fn marked(url: &str, mark: &str) -> String {
    let (scheme, rest) = url.split_once("://").expect("a URL has a scheme");
    let address = rest.split(['/', '?']).next().unwrap_or_default();
    format!("{scheme}://{address}/{mark}?{PLAIN}")
}

/// Creates a user `guest` with a password. The superuser needs none.
pub(crate) async fn lock_with_password(_: &Server, admin: &Db) {
    for sql in [
        "CREATE USER guest IDENTIFIED BY 'right'",
        "GRANT ALL ON *.* TO guest",
    ] {
        sqlx::raw_sql(sql).execute(admin).await.unwrap();
    }
}

/// Sets the password of the user `guest`.
pub(crate) async fn set_password(admin: &Db, password: &str) {
    let sql = format!("SET PASSWORD FOR guest = PASSWORD('{password}')");
    sqlx::raw_sql(super::safe(sql))
        .execute(admin)
        .await
        .unwrap();
}

pub(crate) fn sql(text: &str) -> sqlx::SqlStr {
    super::safe(text.to_owned())
}

/// Returns a statement that gives a setting of the session this value.
pub(crate) fn setting(value: u32) -> String {
    format!("SET max_sort_length = {value}")
}

/// Returns a statement that runs for this long.
pub(crate) fn slow(seconds: u32) -> String {
    format!("SELECT CAST(SLEEP({seconds}) AS SIGNED)")
}

/// Whether a statement that is dropped before its end loses its transaction.
pub(crate) const DROP_LOSES: bool = true;
/// Text that a sandbox refuses.
pub(crate) const REFUSED: &[&str] = &[
    "COMMIT",
    "BEGIN",
    "START TRANSACTION",
    "CREATE TABLE cenote_refused (a INT)",
    "SELECT 1; DROP TABLE cenote_refused",
    "TRUNCATE TABLE cenote_refused",
    "LOCK TABLES cenote_refused WRITE",
];
/// A query with many rows.
pub(crate) const MANY: &str = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 900) \
                        SELECT CAST(n.n AS SIGNED) FROM n, (SELECT n FROM n WHERE n < 100) AS m";
/// Statements that change the session, that read 1 if it is changed, and that undo the change.
pub(crate) const CHANGE: &str = "SET @changed = 1";
pub(crate) const CHANGED: &str = "SELECT CAST(COALESCE(@changed, 0) AS SIGNED)";
pub(crate) const UNDO: &str = "SET @changed = NULL";
/// Statements for the id of a connection, to kill it, and to read a sum.
pub(crate) const WHO: Option<&str> = Some("SELECT CAST(CONNECTION_ID() AS SIGNED)");
pub(crate) const KILL: &str = "KILL {}";
pub(crate) const SUM: &str = "SELECT CAST(SUM(amount) AS SIGNED) FROM {}";
/// Queries for the number of sessions with a mark and for those that run a slow statement, and the
/// statement that drops the schema of the mark.
pub(crate) const SESSIONS: &str =
    "SELECT count(*) FROM information_schema.processlist WHERE db = '{}'";
pub(crate) const BUSY: &str =
    "SELECT count(*) FROM information_schema.processlist WHERE db = '{}' AND info LIKE '%SLEEP%'";
pub(crate) const DROP: &str = "DROP SCHEMA IF EXISTS {}";
/// Whether a migration that fails is undone.
pub(crate) const TRANSACTIONAL: bool = false;
/// Whether migrators at the same time wait for each other. sqlx asks for a lock with an endless
/// timeout, which MariaDB does not grant.
pub(crate) const MIGRATION_LOCK: bool = false;
/// Statements that begin a transaction, and a query for the isolation level of the current one.
pub(crate) const BEGINS: &[&str] = &["BEGIN", "START TRANSACTION"];
pub(crate) const LEVEL: Option<&str> = Some(
    "SELECT trx_isolation_level FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = CONNECTION_ID()",
);
/// A query for the value of [`setting`].
pub(crate) const SETTING: &str = "SELECT CAST(@@max_sort_length AS SIGNED)";
/// A text that begins a transaction in a way that options cannot say.
pub(crate) const SPECIAL: &str = "START TRANSACTION WITH CONSISTENT SNAPSHOT";
/// Statements that begin and end nothing, comments before statements, and a query that reads 1 in a
/// transaction.
pub(crate) const TEXTS: &[&str] = &[
    "SELECT 'it''s; BEGIN'",
    r"SELECT 'it\'s; BEGIN' AS `begin`",
    r#"SELECT "it\"s; COMMIT""#,
    "/*!99999 BEGIN */ SELECT 1",
    "SELECT 1 /*!40000 + 1 */",
    "/*!40000 BEGIN */",
    "/*M!100000 COMMIT */",
    "BEGIN NOT ATOMIC SELECT 1; END",
    "SELECT 1--1",
];
pub(crate) const COMMENTS: &[&str] = &["/* it's /* ; BEGIN */ ", "-- it's; BEGIN\n", "# it's\n"];
pub(crate) const OPEN: &str = "SELECT CAST(@@in_transaction AS SIGNED)";
/// A query whose function writes.
pub(crate) const WRITING_READ: &str = "SELECT RELEASE_LOCK('{}') AS a FROM (SELECT 1) AS b";
/// A mark that every server accepts.
pub(crate) const ANY_MARK: &str = "mysql";
/// Shortens the wait of a transaction for a lock.
pub(crate) const SHORT_WAIT: &str = "SET innodb_lock_wait_timeout = 1";
pub(crate) const USUAL_LEVEL: &str = "REPEATABLE READ";
/// Statements that change the session, each with a query that reads 1 while the change is there.
pub(crate) const LEFT: &[(&str, &str)] = &[
    (
        "SET @left_over = 1",
        "SELECT CAST(@left_over IS NOT NULL AS SIGNED)",
    ),
    (
        "SELECT 1 INTO @left_over",
        "SELECT CAST(@left_over IS NOT NULL AS SIGNED)",
    ),
    (
        "SET SESSION sort_buffer_size = 65536",
        "SELECT CAST(@@sort_buffer_size = 65536 AS SIGNED)",
    ),
    (
        "USE information_schema",
        "SELECT CAST(DATABASE() = 'information_schema' AS SIGNED)",
    ),
    (
        "SET autocommit = 0",
        "SELECT CAST(@@autocommit = 0 AS SIGNED)",
    ),
    (
        "EXECUTE IMMEDIATE 'SET @left_over = 1'",
        "SELECT CAST(@left_over IS NOT NULL AS SIGNED)",
    ),
    (
        "BEGIN NOT ATOMIC SET @left_over = 1; END",
        "SELECT CAST(@left_over IS NOT NULL AS SIGNED)",
    ),
    (
        "GET DIAGNOSTICS @left_over = NUMBER",
        "SELECT CAST(@left_over IS NOT NULL AS SIGNED)",
    ),
    (
        "SELECT LAST_INSERT_ID(42)",
        "SELECT CAST(LAST_INSERT_ID() = 42 AS SIGNED)",
    ),
    (
        "IF 1 THEN SET @left_over = 1; END IF",
        "SELECT CAST(@left_over IS NOT NULL AS SIGNED)",
    ),
];
/// Whether a changed session is reset, so that its connection is kept.
pub(crate) const RESETS: bool = false;
