//! How a session is found on its server.

use std::future::Future;

use sqlx::{Database, Error};
#[cfg(any(feature = "postgres", feature = "mysql"))]
use sqlx::{Executor, Row};

/// How much later than the begin of a session, by the server's clock, another one must have begun
/// to count as another one. A clock that is set makes small errors.
const SLACK: f64 = 2.0;

/// Where a session is found.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub(crate) id: i64,
    /// A moment after the begin of the session, in seconds of the server's clock.
    opened: f64,
    /// The name of the server. Only a server with this name can be asked about the session.
    server: String,
}

#[cfg(all(test, feature = "sqlite"))]
impl Place {
    pub(crate) fn of(id: i64) -> Self {
        Self {
            id,
            opened: 0.0,
            server: String::new(),
        }
    }
}

/// What a server shows about sessions.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct View {
    server: String,
    /// When the server was started.
    started: f64,
    /// The id of each session, when it began, and whether the server waits for its client.
    sessions: Vec<(i64, f64, bool)>,
}

/// What a server says about one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is at work, or the server cannot know it.
    Fine,
    Gone,
    /// The server waits for its client: for a statement, for data, or until data is read.
    Idle,
}

impl View {
    pub(crate) fn find(&self, place: &Place) -> Found {
        if self.server != place.server {
            return Found::Fine;
        }
        if self.started > place.opened + SLACK {
            return Found::Gone;
        }
        let ours =
            |(id, began, _): &&(i64, f64, bool)| *id == place.id && *began <= place.opened + SLACK;
        match self.sessions.iter().find(ours) {
            None => Found::Gone,
            Some((_, _, true)) => Found::Idle,
            Some((_, _, false)) => Found::Fine,
        }
    }
}

/// A database whose sessions can be looked up over another connection.
#[doc(hidden)]
pub trait Watched: Database {
    /// Returns where the session of this connection is found, if sessions can be looked up.
    fn place(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Result<Option<Place>, Error>> + Send {
        let _ = connection;
        async { Ok(None) }
    }

    /// Looks these sessions up over another connection. `None` if the server does not even show the
    /// session of that connection.
    fn look(
        connection: &mut Self::Connection,
        ids: &[i64],
    ) -> impl Future<Output = Result<Option<View>, Error>> + Send {
        let _ = (connection, ids);
        async { Ok(None) }
    }
}

#[cfg(feature = "sqlite")]
impl Watched for sqlx::Sqlite {}

/// A primary is the only one. A replica is told apart by its address.
#[cfg(feature = "postgres")]
macro_rules! postgres {
    ($before:literal, $after:literal) => {
        concat!(
            $before,
            "CASE WHEN pg_is_in_recovery() THEN concat('replica ', inet_server_addr(), ' ', \
             inet_server_port()) ELSE 'primary' END",
            $after
        )
    };
}

#[cfg(feature = "postgres")]
impl Watched for sqlx::Postgres {
    async fn place(connection: &mut sqlx::PgConnection) -> Result<Option<Place>, Error> {
        let sql = postgres!(
            "SELECT ",
            ", pg_backend_pid()::int8, extract(epoch FROM clock_timestamp())::float8"
        );
        let row = connection.fetch_one(sqlx::raw_sql(sql)).await?;
        Ok(Some(Place {
            server: row.try_get(0)?,
            id: row.try_get(1)?,
            opened: row.try_get(2)?,
        }))
    }

    /// The begin and the state of the sessions of other users may be hidden.
    async fn look(connection: &mut sqlx::PgConnection, ids: &[i64]) -> Result<Option<View>, Error> {
        let sql = postgres!(
            "SELECT ",
            ", extract(epoch FROM pg_postmaster_start_time())::float8, pid::int8, \
             coalesce(extract(epoch FROM backend_start), 0)::float8, \
             coalesce(state LIKE 'idle%' OR wait_event_type = 'Client', false), \
             pid = pg_backend_pid() \
             FROM pg_stat_activity WHERE pid = pg_backend_pid() OR pid IN ("
        );
        let rows = sqlx::raw_sql(listed(sql, ids))
            .fetch_all(connection)
            .await?;
        let mut own = None;
        let mut sessions = Vec::new();
        for row in &rows {
            if row.try_get(5)? {
                own = Some((row.try_get(0)?, row.try_get(1)?));
            }
            sessions.push((row.try_get(2)?, row.try_get(3)?, row.try_get(4)?));
        }
        Ok(own.map(|(server, started)| View {
            server,
            started,
            sessions,
        }))
    }
}

/// The server, and the user, because a user may see only sessions of its own.
#[cfg(feature = "mysql")]
macro_rules! mysql {
    ($before:literal, $after:literal) => {
        concat!(
            $before,
            "CONCAT_WS(' ', @@hostname, @@port, @@server_id, CURRENT_USER()), \
             UNIX_TIMESTAMP() + 0e0",
            $after
        )
    };
}

#[cfg(feature = "mysql")]
impl Watched for sqlx::MySql {
    async fn place(connection: &mut sqlx::MySqlConnection) -> Result<Option<Place>, Error> {
        let sql = mysql!("SELECT ", ", CAST(CONNECTION_ID() AS SIGNED)");
        let row = connection.fetch_one(sqlx::raw_sql(sql)).await?;
        Ok(Some(Place {
            server: row.try_get(0)?,
            opened: row.try_get(1)?,
            id: row.try_get(2)?,
        }))
    }

    /// The list does not show when a session began. A server counts ids up until it is restarted.
    async fn look(
        connection: &mut sqlx::MySqlConnection,
        ids: &[i64],
    ) -> Result<Option<View>, Error> {
        let uptime = sqlx::raw_sql("SHOW GLOBAL STATUS LIKE 'Uptime'");
        let uptime: String = uptime.fetch_one(&mut *connection).await?.try_get(1)?;
        let sql = mysql!(
            "SELECT ",
            ", CAST(ID AS SIGNED), \
             COMMAND = 'Sleep' OR COALESCE(STATE, '') IN ('Reading from net', 'Writing to net'), \
             ID = CONNECTION_ID() \
             FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID() OR ID IN ("
        );
        let rows = sqlx::raw_sql(listed(sql, ids))
            .fetch_all(connection)
            .await?;
        let mut own: Option<(String, f64)> = None;
        let mut sessions = Vec::new();
        for row in &rows {
            if row.try_get::<i64, _>(4)? == 1 {
                own = Some((row.try_get(0)?, row.try_get(1)?));
            }
            sessions.push((row.try_get(2)?, 0.0, row.try_get::<i64, _>(3)? == 1));
        }
        let (Some((server, now)), Ok(uptime)) = (own, uptime.parse::<f64>()) else {
            return Ok(None);
        };
        Ok(Some(View {
            server,
            started: now - uptime,
            sessions,
        }))
    }
}

/// Returns the text with the list of ids at its end.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn listed(sql: &str, ids: &[i64]) -> sqlx::SqlStr {
    let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
    let sql = format!("{sql}{})", ids.join(", "));
    sqlx::SqlSafeStr::into_sql_str(sqlx::AssertSqlSafe(sql))
}

#[cfg(test)]
mod tests;
