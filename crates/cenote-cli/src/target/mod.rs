//! The server that a URL names: which driver it needs, and whether this program has it.

#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
mod contact;
#[cfg(feature = "mysql")]
pub(crate) mod mysql;
mod places;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "redis")]
pub(crate) mod redis;
pub(crate) mod sqlite;

use crate::failure::{Failure, usage};

#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
use contact::contact;
pub(crate) use places::Places;

/// A server or a file, and the driver for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Sqlite(String),
    #[cfg(feature = "postgres")]
    Postgres(String),
    #[cfg(feature = "mysql")]
    Mysql(String),
    #[cfg(feature = "redis")]
    Redis(String),
}

const KNOWN: &str =
    "`postgres://`, `mysql://`, `redis://`, `sqlite://` or the path of a SQLite file";

impl Target {
    pub(crate) fn parse(url: &str) -> Result<Self, Failure> {
        let own = url.to_owned();
        let scheme = url.split_once("://").map(|(scheme, _)| scheme);
        match scheme {
            Some("sqlite" | "file") => Ok(Self::Sqlite(own)),
            #[cfg(feature = "postgres")]
            Some("postgres" | "postgresql") => Ok(Self::Postgres(own)),
            #[cfg(not(feature = "postgres"))]
            Some("postgres" | "postgresql") => Err(not_built_in("postgres", "PostgreSQL")),
            #[cfg(feature = "mysql")]
            Some("mysql") => Ok(Self::Mysql(own)),
            #[cfg(feature = "mysql")]
            Some("mariadb") => Ok(Self::Mysql(url.replacen("mariadb", "mysql", 1))),
            #[cfg(not(feature = "mysql"))]
            Some("mysql" | "mariadb") => Err(not_built_in("mysql", "MySQL and MariaDB")),
            #[cfg(feature = "redis")]
            Some("redis" | "rediss") => Ok(Self::Redis(own)),
            #[cfg(not(feature = "redis"))]
            Some("redis" | "rediss") => Err(not_built_in("redis", "Redis")),
            Some(other) => Err(usage(format!("no driver for `{other}://`: use {KNOWN}"))),
            None if url.is_empty() => Err(usage(format!("an empty URL: use {KNOWN}"))),
            None if url == ":memory:" || url.starts_with("file:") => Ok(Self::Sqlite(own)),
            None if url.contains(':') => Err(usage(format!(
                "`{}` has no scheme: use {KNOWN}",
                without_password(url)
            ))),
            None => Ok(Self::Sqlite(own)),
        }
    }

    /// Returns the URL without its password.
    pub(crate) fn shown(&self) -> String {
        without_password(self.url())
    }

    fn url(&self) -> &str {
        match self {
            Self::Sqlite(url) => url,
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => url,
            #[cfg(feature = "mysql")]
            Self::Mysql(url) => url,
            #[cfg(feature = "redis")]
            Self::Redis(url) => url,
        }
    }
}

#[cfg(not(all(
    feature = "mysql",
    feature = "nats",
    feature = "postgres",
    feature = "redis"
)))]
pub(crate) fn not_built_in(feature: &str, name: &str) -> Failure {
    usage(format!(
        "{name} is not built in: build with `--features {feature}`, or with `--features full` for \
         all of them (`cargo run --release --features full -- …`)"
    ))
}

pub(crate) fn without_password(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + "://".len());
    let end = url[start..]
        .find(['/', '?'])
        .map_or(url.len(), |at| start + at);
    let Some(at) = url[start..end].rfind('@') else {
        return url.to_owned();
    };
    let login = &url[start..start + at];
    match login.split_once(':') {
        Some((user, _)) => format!("{}{user}:***{}", &url[..start], &url[start + at..]),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests;
