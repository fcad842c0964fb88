//! MySQL and MariaDB.

use std::sync::OnceLock;

use cenote_servers::{Found, Server, Setting};
use cenote_sqlx::Builder;
use sqlx::Connection;

pub(crate) type DB = sqlx::MySql;
pub(crate) type Db = cenote_sqlx::Db<DB>;

const PLAIN: &str = "ssl-mode=disabled";

/// Nothing to keep.
pub(crate) type Home = ();

/// In the plain: TLS has tests of its own.
pub(crate) fn url() -> String {
    static FOUND: OnceLock<Found> = OnceLock::new();
    static URL: OnceLock<String> = OnceLock::new();
    let server = super::server(&FOUND, cenote_servers::mariadb::find);
    let url = URL.get_or_init(|| with_database(server));
    super::with_parameter(url, PLAIN)
}

/// A server that was named without a database, or was just started, has none to test in: it gets one.
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
    // On a thread of its own: this may be called inside a runtime.
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
    };
    let created = std::thread::spawn(move || runtime().unwrap().block_on(create));
    created.join().expect("a database can be created");
    format!("{}/cenote_test", server.trim_end_matches('/'))
}

pub(crate) fn builder() -> (Builder<DB>, Home) {
    (Db::mysql(url()), ())
}

/// With more parameters in its URL.
pub(crate) fn builder_with(parameters: &str) -> (Builder<DB>, Home) {
    (Db::mysql(super::with_parameter(&url(), parameters)), ())
}

/// A private server, to be stopped, killed or starved.
pub(crate) fn start(settings: &[Setting<'_>]) -> Server {
    cenote_servers::mariadb::start_with(settings).unwrap()
}

/// The same server, for sessions that it shows under this mark: their schema, which must be there.
pub(crate) fn marked(url: &str, mark: &str) -> String {
    let (scheme, rest) = url.split_once("://").expect("a URL has a scheme");
    let address = rest.split(['/', '?']).next().unwrap_or_default();
    format!("{scheme}://{address}/{mark}?{PLAIN}")
}

/// Makes a user `guest` with a password. Whoever owns the server needs none.
pub(crate) async fn lock_with_password(_: &Server, admin: &Db) {
    for sql in [
        "CREATE USER guest IDENTIFIED BY 'right'",
        "GRANT ALL ON *.* TO guest",
    ] {
        sqlx::raw_sql(sql).execute(admin).await.unwrap();
    }
}

/// Of that user.
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

/// Runs for this long.
pub(crate) fn slow(seconds: u32) -> String {
    format!("SELECT CAST(SLEEP({seconds}) AS SIGNED)")
}

/// Many rows.
pub(crate) const MANY: &str = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 900) \
                        SELECT CAST(n.n AS SIGNED) FROM n, (SELECT n FROM n WHERE n < 100) AS m";
/// Changes the session, how the change is seen, and how it is undone.
pub(crate) const CHANGE: &str = "SET @changed = 1";
pub(crate) const CHANGED: &str = "SELECT CAST(COALESCE(@changed, 0) AS SIGNED)";
pub(crate) const UNDO: &str = "SET @changed = NULL";
/// Who runs this connection, how it is killed, and what a sum is read as.
pub(crate) const WHO: Option<&str> = Some("SELECT CAST(CONNECTION_ID() AS SIGNED)");
pub(crate) const KILL: &str = "KILL {}";
pub(crate) const SUM: &str = "SELECT CAST(SUM(amount) AS SIGNED) FROM {}";
/// How many sessions there are under a mark, how many of them run what is slow, and how its schema is dropped.
pub(crate) const SESSIONS: &str =
    "SELECT count(*) FROM information_schema.processlist WHERE db = '{}'";
pub(crate) const BUSY: &str =
    "SELECT count(*) FROM information_schema.processlist WHERE db = '{}' AND info LIKE '%SLEEP%'";
pub(crate) const DROP: &str = "DROP SCHEMA IF EXISTS {}";
/// Is a migration that fails undone by itself?
pub(crate) const TRANSACTIONAL: bool = false;
/// Do those who migrate at the same time wait for each other? sqlx asks for a lock without end, which MariaDB answers with none.
pub(crate) const MIGRATION_LOCK: bool = false;
/// How a transaction is begun by SQL, and what tells the isolation level of the one that runs.
pub(crate) const BEGINS: &[&str] = &["BEGIN", "START TRANSACTION"];
pub(crate) const LEVEL: Option<&str> = Some(
    "SELECT trx_isolation_level FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = CONNECTION_ID()",
);
/// A mark that every server has.
pub(crate) const ANY_MARK: &str = "mysql";
/// Makes a transaction wait for a lock for a short time only.
pub(crate) const SHORT_WAIT: &str = "SET innodb_lock_wait_timeout = 1";
pub(crate) const USUAL_LEVEL: &str = "REPEATABLE READ";
