//! What to look for, and what to write instead.

use crate::args::From;

/// A line matches if it contains all of these words.
pub(super) struct Rule {
    pub(super) words: &'static [&'static str],
    pub(super) instead: &'static str,
}

const fn rule(words: &'static [&'static str], instead: &'static str) -> Rule {
    Rule { words, instead }
}

/// Returns the rules for a file. The first one that matches a line counts.
pub(super) fn of(from: From, is_manifest: bool) -> &'static [Rule] {
    match (from, is_manifest) {
        (From::Sqlx, false) => SQLX,
        (From::Sqlx, true) => &[],
        (From::Bb8, false) => BB8,
        (From::Bb8, true) => BB8_MANIFEST,
        (From::Deadpool, false) => DEADPOOL,
        (From::Deadpool, true) => DEADPOOL_MANIFEST,
    }
}

/// Returns whether a line contains all words. A word that begins or ends with a letter must not be
/// part of a longer name.
pub(super) fn matches(line: &str, words: &[&str]) -> bool {
    words.iter().all(|word| contains(line, word))
}

fn contains(line: &str, word: &str) -> bool {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let begins = !word.starts_with(is_name) || !before.is_some_and(is_name);
        let ends = !word.ends_with(is_name) || !after.is_some_and(is_name);
        begins && ends
    })
}

const SQLX: &[Rule] = &[
    rule(
        &["PgPoolOptions"],
        "`cenote_sqlx::Db::postgres(url)`, a builder; `max_connections` is `max_size`",
    ),
    rule(
        &["MySqlPoolOptions"],
        "`cenote_sqlx::Db::mysql(url)`, a builder; `max_connections` is `max_size`",
    ),
    rule(
        &["SqlitePoolOptions"],
        "`cenote_sqlx::Db::sqlite(url)`, a builder; `max_connections` is `max_size`",
    ),
    rule(
        &["PoolOptions"],
        "the builder of `cenote_sqlx::Db`; `max_connections` is `max_size`",
    ),
    rule(
        &["PgPool", "connect"],
        "`Db::postgres(url).build()?`: it opens nothing before its first use",
    ),
    rule(
        &["SqlitePool", "connect"],
        "`Db::sqlite(url).build()?`: it opens nothing before its first use",
    ),
    rule(
        &["MySqlPool", "connect"],
        "`Db::mysql(url).build()?`: it opens nothing before its first use",
    ),
    rule(&["PoolConnection"], "`cenote_sqlx::Lease`"),
    rule(
        &["PgPool"],
        "`cenote_sqlx::Db<Postgres>`: it is an `Executor`, `&db` works where `&pool` did",
    ),
    rule(
        &["MySqlPool"],
        "`cenote_sqlx::Db<MySql>`: it is an `Executor`, `&db` works where `&pool` did",
    ),
    rule(
        &["SqlitePool"],
        "`cenote_sqlx::Db<Sqlite>`: it is an `Executor`, `&db` works where `&pool` did",
    ),
    rule(&["sqlx::Pool"], "`cenote_sqlx::Db<DB>`"),
    rule(&["Pool<", "sqlx"], "`cenote_sqlx::Db<DB>`"),
    rule(&["Pool<Postgres>"], "`cenote_sqlx::Db<Postgres>`"),
    rule(&["Pool<MySql>"], "`cenote_sqlx::Db<MySql>`"),
    rule(&["Pool<Sqlite>"], "`cenote_sqlx::Db<Sqlite>`"),
    rule(
        &["pool", ".begin()"],
        "`db.begin()`, or `db.transaction(async || …)`: statements of `db` inside it take part",
    ),
    rule(
        &["pool", ".try_acquire()"],
        "`db.pool().try_acquire()`, which returns a `Result`",
    ),
    rule(
        &["pool", ".acquire()"],
        "`db.acquire()`; a timeout names the lines that hold connections",
    ),
    rule(&["pool", ".num_idle()"], "`db.pool().status().idle`"),
    rule(&["pool", ".size()"], "`db.pool().status().total`"),
    rule(
        &["pool", ".close()"],
        "`db.pool().close_within(limit)`, which returns what was left",
    ),
    rule(
        &["PgListener"],
        "`db.listener().await?`: the same type, on a connection of the handle",
    ),
    rule(&["sqlx::test"], "`#[cenote_sqlx::test]`"),
    rule(
        &["Error::PoolTimedOut"],
        "`cenote_sqlx::is_timeout(&error)`",
    ),
    rule(&["Error::PoolClosed"], "`AcquireError::Closed`"),
];

const BB8: &[Rule] = &[
    rule(
        &["bb8::ManageConnection", "for"],
        "`cenote::Manager` (`connect` is `open`, `is_valid` is `check`, `has_broken` is `is_broken`), or keep it: `cenote_bridge` takes it",
    ),
    rule(
        &["ManageConnection", "for"],
        "`cenote::Manager`, or keep it: `cenote_bridge` takes it",
    ),
    rule(
        &["bb8::Pool::builder"],
        "`Pool::builder(manager)` of cenote; `build` does not wait, call `warm`",
    ),
    rule(&["PooledConnection"], "`cenote::Lease<Manager>`"),
    rule(
        &["PostgresConnectionManager"],
        "`cenote_postgres::Pool::from_url(url)`",
    ),
    rule(
        &["RedisConnectionManager"],
        "`cenote_redis::Pool::from_url(url)`",
    ),
    rule(&["bb8::RunError"], "`cenote::AcquireError`"),
    rule(
        &["RunError::"],
        "`cenote::AcquireError`: `TimedOut` and `Open`",
    ),
    rule(
        &["pool", ".get_owned()"],
        "`pool.acquire()`: every lease is owned",
    ),
    rule(&["pool", ".get()"], "`pool.acquire()`"),
    rule(
        &["pool", ".dedicated_connection()"],
        "`Lease::detach(pool.acquire().await?)`",
    ),
    rule(&["pool", ".state()"], "`pool.status()`"),
    rule(
        &[".connection_timeout("],
        "`.acquire_timeout(…)`: 5 s by default, bb8 has 30 s",
    ),
    rule(
        &[".test_on_check_out("],
        "`.check_after_idle(…)`: zero checks at every acquire, `None` never",
    ),
    rule(
        &[".min_idle("],
        "`.min_idle(…)`: the same; call `warm` to open them at once",
    ),
    rule(&["bb8::Pool"], "`cenote::Pool`"),
    rule(&["use bb8"], "`use cenote::…`, or the crate for the driver"),
];

const BB8_MANIFEST: &[Rule] = &[
    rule(&["bb8-postgres"], "`cenote-postgres`"),
    rule(&["bb8-redis"], "`cenote-redis`"),
    rule(&["bb8"], "`cenote`, or `cenote-bridge` to keep a manager"),
];

const DEADPOOL: &[Rule] = &[
    rule(
        &["managed::Manager", "for"],
        "`cenote::Manager` (`create` is `open`, `recycle` is `check` and `clean`), or keep it: `cenote_bridge` takes it",
    ),
    rule(
        &["create_pool("],
        "`Pool::from_url(url).build()?` of the crate for the driver: no runtime is named",
    ),
    rule(
        &["Manager::from_config("],
        "`cenote_postgres::Pool::with_options(config)`",
    ),
    rule(
        &["RecyclingMethod"],
        "`cenote_postgres::Reset`: `Fast` is `Never`, `Clean` is `Always`",
    ),
    rule(&["Object::take("], "`Lease::detach(lease)`"),
    rule(
        &["PoolError::Timeout"],
        "`AcquireError::TimedOut`, which names the holders",
    ),
    rule(&["PoolError"], "`cenote::AcquireError`"),
    rule(
        &["Hook::"],
        "`before_acquire`, `before_release` or `after_connect` of the builder",
    ),
    rule(&["pool", ".timeout_get("], "`pool.acquire_within(limit)`"),
    rule(
        &["pool", ".get()"],
        "`pool.acquire()`: it gives up after 5 s, deadpool waits for ever",
    ),
    rule(&["pool", ".try_get()"], "`pool.try_acquire()`"),
    rule(
        &["pool", ".retain("],
        "`pool.retain(…)`: the closure gets the resource alone",
    ),
    rule(
        &["pool", ".close()"],
        "`pool.close_within(limit)`, which returns what was left",
    ),
    rule(
        &["pool", ".status()"],
        "`pool.status()`: `available` is `idle`, `size` is `total`",
    ),
    rule(&["wait_timeout("], "`.acquire_timeout(…)`"),
    rule(&["create_timeout("], "`.open_timeout(…)`"),
    rule(
        &["recycle_timeout("],
        "`.check_timeout(…)` and `.clean_timeout(…)`",
    ),
    rule(
        &["deadpool::managed"],
        "`cenote::Pool` and `cenote::Manager`",
    ),
    rule(&["deadpool_postgres"], "`cenote_postgres`"),
    rule(&["deadpool_redis"], "`cenote_redis`"),
    rule(&["deadpool_sqlite"], "`cenote_rusqlite`"),
    rule(&["deadpool_lapin"], "`cenote_amqp`"),
    rule(&["deadpool_diesel"], "`cenote_diesel`"),
];

const DEADPOOL_MANIFEST: &[Rule] = &[
    rule(&["deadpool-postgres"], "`cenote-postgres`"),
    rule(&["deadpool-redis"], "`cenote-redis`"),
    rule(&["deadpool-sqlite"], "`cenote-rusqlite`"),
    rule(&["deadpool-lapin"], "`cenote-amqp`"),
    rule(&["deadpool-diesel"], "`cenote-diesel`"),
    rule(
        &["deadpool"],
        "`cenote`, or `cenote-bridge` to keep a manager",
    ),
];
