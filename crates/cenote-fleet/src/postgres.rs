//! PostgreSQL as the engine: the cell is a row, the sessions are counted, and a silent member is
//! fenced.

mod line;

use std::fmt;

use line::Line;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, NoTls, Row, Socket};

use crate::cell::MemberId;
use crate::engine::{Engine, EngineError, Snapshot};
use crate::fleet::{Fleet, Joining};
use crate::group::{self, GroupError};
use crate::step::Counts;

/// The table of the cells, and what a migration has to write for a group. Without a migration the
/// first member writes it, if its role may.
///
/// An empty cell is that of a new group. If the row is missing, the group may have lost it, and its
/// members learn for a TTL what they hold.
///
/// ```
/// assert_eq!(cenote_fleet::TABLE, "CREATE TABLE cenote_fleet (\
///      name text PRIMARY KEY, version bigint NOT NULL, cell bytea NOT NULL)");
/// let group = "INSERT INTO cenote_fleet VALUES ('orders', 0, '')";
/// # let _ = group;
/// ```
pub const TABLE: &str = "CREATE TABLE cenote_fleet (\
     name text PRIMARY KEY, version bigint NOT NULL, cell bytea NOT NULL)";

const READ: &str = "SELECT system_identifier, \
     substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) AS timeline, version, cell \
     FROM pg_control_system() LEFT JOIN cenote_fleet ON name = $1";

const INSERT: &str = "INSERT INTO cenote_fleet VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";

const UPDATE: &str = "UPDATE cenote_fleet SET version = $4::bigint + 1, cell = $3 \
     WHERE name = $1 AND version = $2";

/// A worker of a parallel query carries the name of its leader, and is no session.
const COUNT: &str = "SELECT right(application_name, 16), count(*) FROM pg_stat_activity \
     WHERE left(right(application_name, 16 + length($1)), length($1)) = $1 \
     AND backend_type = 'client backend' GROUP BY 1";

const FENCE: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
     WHERE right(application_name, length($1)) = $1 AND pid <> pg_backend_pid()";

const GROUPS: &str = "SELECT name FROM cenote_fleet ORDER BY name";

/// The channel of the nudges of all groups. The payload is the tag of the member that nudges.
const CHANNEL: &str = "cenote_fleet";

/// Keeps the cell in the database whose connections are shared. It has one control connection per
/// member, which is part of the member's overhead.
///
/// The truth is `pg_stat_activity`: every session of a member has the member's tag at the end of
/// its `application_name`, so build the pool with [`Joining::tag`]. All members must use the same
/// role, because a role sees and ends only its own sessions. The control connection needs a line of
/// its own to the primary: a pooler between the two would break the tag.
pub struct Postgres<T> {
    config: Config,
    tls: T,
    group: String,
    tag: String,
    line: Option<Line>,
    /// Where the table is known to be. It is not looked for again.
    has_table: bool,
    /// The newest version that was seen. A lower one is a row that was set back.
    newest: i64,
}

impl Fleet {
    /// Begins to join a group that is kept in PostgreSQL, without TLS. The group is named by
    /// letters, digits, `-` and `_`, and 40 of them at most.
    ///
    /// ```no_run
    /// # async fn f() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_fleet::Fleet;
    /// use cenote_postgres::Pool;
    ///
    /// let mut options: tokio_postgres::Config = "postgres://app@localhost/shop".parse()?;
    /// let joining = Fleet::postgres(&options, "orders")?;
    /// options.application_name(joining.tag("api"));
    /// let pool = Pool::with_options(options).build()?;
    /// let fleet = joining.capacity(80).overhead(1).join(&pool).await?;
    /// # drop(fleet);
    /// # Ok(()) }
    /// ```
    pub fn postgres(config: &Config, group: &str) -> Result<Joining<Postgres<NoTls>>, GroupError> {
        Self::postgres_tls(config, group, NoTls)
    }

    /// As [`Fleet::postgres`], by TLS. The connector is the one that the pool is given. For a pool
    /// that is given a `rustls::ClientConfig` it is `tokio_postgres_rustls::MakeRustlsConnect`.
    pub fn postgres_tls<T>(
        config: &Config,
        group: &str,
        tls: T,
    ) -> Result<Joining<Postgres<T>>, GroupError>
    where
        Postgres<T>: Engine,
    {
        let group = group::named(group)?;
        let id = MemberId(fastrand::u64(..));
        let engine = Postgres {
            config: config.clone(),
            tls,
            tag: format!("{}{id}", prefix(&group)),
            group,
            line: None,
            has_table: false,
            newest: 0,
        };
        Ok(Joining::new(engine, id))
    }
}

/// What all tags of a group begin with.
fn prefix(group: &str) -> String {
    format!("cn:{group}:")
}

impl<T> Joining<Postgres<T>> {
    /// Returns the `application_name` for the sessions of the pool: `name` as far as there is room
    /// for it in 63 bytes, and the tag.
    ///
    /// ```
    /// let options = tokio_postgres::Config::new();
    /// let joining = cenote_fleet::Fleet::postgres(&options, "orders")?;
    /// assert_eq!(joining.tag("api"), format!("api cn:orders:{}", joining.id()));
    /// # Ok::<_, cenote_fleet::GroupError>(())
    /// ```
    pub fn tag(&self, name: &str) -> String {
        let tag = &self.engine.tag;
        // PostgreSQL cuts a longer name at its end, where the tag is, and replaces other letters.
        let name = name.chars().filter(|c| c.is_ascii_graphic());
        let name: String = name.take(62 - tag.len()).collect();
        format!("{name} {tag}").trim_start().to_owned()
    }
}

impl<T> Postgres<T>
where
    T: MakeTlsConnect<Socket> + Clone + Send + 'static,
    T::TlsConnect: Send,
    T::Stream: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    /// Takes the control connection. The caller puts it back after success, so that a connection
    /// whose call failed or was dropped is closed.
    fn line(&mut self) -> Result<Line, EngineError> {
        let line = self.line.take().filter(Line::is_open);
        line.ok_or_else(|| "the control connection is lost".into())
    }

    /// Tells the nudges of other members of the group.
    fn nudges(&self) -> impl Fn(&str) -> bool + Send + 'static {
        let (prefix, own) = (prefix(&self.group), self.tag.clone());
        move |tag| tag.starts_with(&prefix) && tag != own
    }

    async fn query(
        &mut self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, EngineError> {
        let line = self.line()?;
        let rows = line.client.query(sql, parameters).await?;
        self.line = Some(line);
        Ok(rows)
    }

    async fn execute(
        &mut self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, EngineError> {
        let line = self.line()?;
        let count = line.client.execute(sql, parameters).await?;
        self.line = Some(line);
        Ok(count)
    }
}

impl<T> Engine for Postgres<T>
where
    T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    T::TlsConnect: Send,
    T::Stream: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    type Version = Option<i64>;

    async fn connect(&mut self) -> Result<(), EngineError> {
        if self.is_connected() {
            return Ok(());
        }
        self.line = None; // its session ends before the next begins
        let mut config = self.config.clone();
        config.application_name(&self.tag);
        let line = Line::open(&config, self.tls.clone(), self.nudges()).await?;
        self.line = Some(line);
        Ok(())
    }

    async fn read(&mut self) -> Result<Snapshot<Option<i64>>, EngineError> {
        if !self.has_table {
            let line = self.line()?;
            line.make_table(&self.group).await?;
            (self.line, self.has_table) = (Some(line), true);
        }
        let group = self.group.clone();
        let rows = self.query(READ, &[&group]).await?;
        let row = rows.first().ok_or("the server did not tell its identity")?;
        let origin = origin(row.try_get(0)?, row.try_get(1)?)?;
        let (version, bytes): (Option<i64>, Option<Vec<u8>>) = (row.try_get(2)?, row.try_get(3)?);
        let seen = version.unwrap_or(self.newest);
        let bytes = bytes.filter(|_| seen >= self.newest);
        self.newest = self.newest.max(seen);
        Ok(Snapshot::of(origin, version, bytes))
    }

    async fn swap(&mut self, version: &Option<i64>, bytes: &[u8]) -> Result<bool, EngineError> {
        let group = self.group.clone();
        let (count, next) = match version {
            Some(version) => {
                let newest = self.newest.max(*version);
                let parameters: [&(dyn ToSql + Sync); 4] = [&group, version, &bytes, &newest];
                (self.execute(UPDATE, &parameters).await?, newest + 1)
            }
            None => {
                // A row that was lost and written again must not have a version of before.
                let first = self.newest + fastrand::i64(1..1 << 40);
                let count = self.execute(INSERT, &[&group, &first, &bytes]).await?;
                (count, first)
            }
        };
        let is_won = count == 1;
        self.newest = if is_won { next } else { self.newest };
        Ok(is_won)
    }

    async fn nudge(&mut self) -> Result<(), EngineError> {
        let tag = self.tag.clone();
        let sql = "SELECT pg_notify($1, $2)";
        self.query(sql, &[&CHANNEL, &tag]).await.map(drop)
    }

    async fn nudged(&mut self) {
        match &self.line {
            Some(line) => line.nudged().await,
            None => std::future::pending().await,
        }
    }

    fn sessions(&self) -> u32 {
        1
    }

    fn is_connected(&self) -> bool {
        self.line.as_ref().is_some_and(Line::is_open)
    }

    async fn count(&mut self) -> Result<Option<Counts>, EngineError> {
        let prefix = prefix(&self.group);
        let rows = self.query(COUNT, &[&prefix]).await?;
        let mut counts = Counts::new();
        for row in rows {
            let (tag, count): (&str, i64) = (row.try_get(0)?, row.try_get(1)?);
            let id = MemberId(u64::from_str_radix(tag, 16)?);
            counts.insert(id, count.try_into()?);
        }
        Ok(Some(counts))
    }

    async fn fence(&mut self, member: MemberId) -> Result<(), EngineError> {
        let tag = format!("{}{member}", prefix(&self.group));
        self.query(FENCE, &[&tag]).await.map(drop)
    }

    fn only_look(&mut self) {
        self.tag = "cenote fleet reader".to_owned(); // no tag, so no member counts it
        self.has_table = true;
    }

    async fn groups(&mut self) -> Result<Option<Vec<String>>, EngineError> {
        let rows = self.query(GROUPS, &[]).await?;
        let names: Result<_, _> = rows.iter().map(|row| row.try_get(0)).collect();
        Ok(Some(names?))
    }
}

/// The history of a server: another server has another identifier, and a promoted or restored one
/// has another timeline.
fn origin(identifier: i64, timeline: &str) -> Result<u64, EngineError> {
    let timeline = u64::from_str_radix(timeline, 16)?;
    Ok(identifier as u64 ^ timeline.rotate_left(40))
}

impl<T> fmt::Debug for Postgres<T> {
    /// Leaves out the options, which contain the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("tag", &self.tag)
            .finish_non_exhaustive()
    }
}
