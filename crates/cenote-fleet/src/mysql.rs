//! MariaDB or MySQL as the engine: the cell is a row, the sessions are counted, and a silent member
//! is fenced.
//!
//! A session has no name there that others can see. So each session writes its number and its
//! member to a table, before anything else. That table is in memory, and empty after a restart of
//! the server, which begins its numbers again.

mod line;
mod sessions;

use std::fmt;

use line::{Line, Turn};
use mysql_async::prelude::Queryable;
use mysql_async::{Opts, OptsBuilder};
use sessions::Untagged;

use crate::cell::MemberId;
use crate::engine::{Engine, EngineError, Snapshot};
use crate::fleet::{Fleet, Joining};
use crate::group::{self, GroupError};
use crate::step::Counts;

/// The tables that a migration has to make. Without a migration the first member makes them, if its
/// user may.
///
/// The first has the cells. An empty cell is that of a new group. If the row is missing, the group
/// may have lost it, and its members learn for a TTL what they hold. The others are in memory.
///
/// ```
/// let [cells, sessions, signals] = cenote_fleet::MYSQL_TABLES;
/// assert!(cells.ends_with("ENGINE = InnoDB"));
/// assert!([sessions, signals].iter().all(|table| table.ends_with("ENGINE = MEMORY")));
/// let group = "INSERT INTO cenote_fleet VALUES ('orders', '')";
/// # let _ = group;
/// ```
pub const MYSQL_TABLES: [&str; 3] = [
    "CREATE TABLE cenote_fleet (\
     name VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY, \
     cell BLOB NOT NULL) ENGINE = InnoDB",
    "CREATE TABLE cenote_fleet_session (id BIGINT UNSIGNED PRIMARY KEY, \
     name VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, \
     member BIGINT UNSIGNED NOT NULL) ENGINE = MEMORY",
    "CREATE TABLE cenote_fleet_signal (\
     name VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY, \
     run BIGINT UNSIGNED NOT NULL, nudges BIGINT UNSIGNED NOT NULL) ENGINE = MEMORY",
];

/// A server that was started again has lost the number of its run. A replica may have a copy of it,
/// and has another name.
const READ: &str = "SELECT CAST(CONV(LEFT(SHA2(CONCAT_WS(' ', \
     @@hostname, @@port, @@server_id, run), 256), 16), 16, 10) AS UNSIGNED), cell \
     FROM cenote_fleet_signal AS s LEFT JOIN cenote_fleet AS c ON c.name = s.name \
     WHERE s.name = ?";

const INSERT: &str = "INSERT IGNORE INTO cenote_fleet VALUES (?, ?)";

/// A value never comes twice, because each has a beat that none had before.
const UPDATE: &str = "UPDATE cenote_fleet SET cell = ? WHERE name = ? AND cell = ?";

const GROUPS: &str = "SELECT name FROM cenote_fleet ORDER BY name";

/// The server tells the new number with its answer.
const NUDGE: &str = "UPDATE cenote_fleet_signal SET nudges = LAST_INSERT_ID(nudges + 1) \
     WHERE name = ?";

/// Keeps the cell in the database whose connections are shared. It has one control connection per
/// member, which is part of the member's overhead.
///
/// The truth is `information_schema.processlist`: every session of a member has written its number
/// beside the member, so open the pool with [`Joining::tagged`] or [`Joining::tag`]. All members
/// must use the same user, because a user sees and ends only its own sessions. The user should have
/// no other sessions: one without a tag takes a part of the budget after a second.
pub struct Mysql {
    options: Opts,
    group: String,
    id: MemberId,
    untagged: Untagged,
    line: Option<Line>,
    /// The table of the cells is known to be there. It is not looked for again.
    has_cells: bool,
    only_looks: bool,
    counts: u32,
}

impl Fleet {
    /// Begins to join a group that is kept in MariaDB or MySQL, in the database that the options
    /// name. The group is named by letters, digits, `-` and `_`, and 40 of them at most.
    ///
    /// The user needs `SELECT, INSERT, UPDATE, DELETE` on the three tables `cenote_fleet`,
    /// `cenote_fleet_session` and `cenote_fleet_signal`, and `CREATE` if there was no migration. To
    /// see and to end its own sessions it needs nothing more. For TLS, the options have `ssl_opts`.
    ///
    /// ```no_run
    /// # async fn f() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_fleet::Fleet;
    /// use cenote_mysql::Pool;
    /// use cenote_mysql::mysql_async::Opts;
    ///
    /// let options = Opts::from_url("mysql://app@localhost/shop")?;
    /// let joining = Fleet::mysql(&options, "orders")?;
    /// let pool = Pool::with_options(joining.tagged(&options)).build()?;
    /// let fleet = joining.capacity(80).overhead(1).join(&pool).await?;
    /// # drop(fleet);
    /// # Ok(()) }
    /// ```
    pub fn mysql(options: &Opts, group: &str) -> Result<Joining<Mysql>, GroupError> {
        let id = MemberId(fastrand::u64(1..));
        let engine = Mysql {
            options: options.clone(),
            group: group::named(group)?,
            id,
            untagged: Untagged::new(),
            line: None,
            has_cells: false,
            only_looks: false,
            counts: 0,
        };
        Ok(Joining::new(engine, id))
    }
}

impl Joining<Mysql> {
    /// Returns the statement that every session of the pool must run first, for pools on another
    /// driver. It may run again.
    ///
    /// ```
    /// # use mysql_async::Opts;
    /// let options = Opts::from_url("mysql://app@localhost/shop")?;
    /// let joining = cenote_fleet::Fleet::mysql(&options, "orders")?;
    /// assert!(joining.tag().starts_with("REPLACE INTO cenote_fleet_session "));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn tag(&self) -> String {
        sessions::tag(&self.engine.group, self.id())
    }

    /// Returns the options for the sessions of the pool: they run [`tag`](Joining::tag) first.
    pub fn tagged(&self, options: &Opts) -> Opts {
        let mut init = options.init().to_vec();
        init.push(self.tag()); // the driver begins with the last
        OptsBuilder::from_opts(options.clone()).init(init).into()
    }
}

impl Mysql {
    /// Waits for a turn on the control connection. If the future is dropped meanwhile, the
    /// connection is closed.
    async fn turn(&mut self) -> Result<Turn, EngineError> {
        const LOST: &str = "the control connection is lost";
        let line = self.line.take().ok_or(LOST)?;
        let turn = line.turn().await.ok_or(LOST)?;
        self.line = Some(line);
        Ok(turn)
    }
}

impl Engine for Mysql {
    /// The value itself.
    type Version = Option<Vec<u8>>;

    async fn connect(&mut self) -> Result<(), EngineError> {
        if !self.is_connected() {
            self.line = None; // its session ends before the next begins
            let member = (!self.only_looks).then_some(self.id);
            self.line = Some(Line::open(&self.options, &self.group, member).await?);
        }
        Ok(())
    }

    async fn read(&mut self) -> Result<Snapshot<Self::Version>, EngineError> {
        let mut turn = self.turn().await?;
        if !self.has_cells {
            turn.make_cells(&self.group).await?;
            self.has_cells = true;
        }
        let row = turn.conn.exec_first(READ, (&self.group,)).await?;
        // Without a row the connection is given up, and the next one makes it.
        let (origin, cell): (u64, Option<Vec<u8>>) =
            row.ok_or("the table of signals was emptied")?;
        turn.done();
        Ok(Snapshot::of(origin, cell.clone(), cell))
    }

    async fn swap(&mut self, version: &Self::Version, bytes: &[u8]) -> Result<bool, EngineError> {
        let mut turn = self.turn().await?;
        let group = &self.group;
        match version {
            Some(before) => turn.conn.exec_drop(UPDATE, (bytes, group, before)).await?,
            None => turn.conn.exec_drop(INSERT, (group, bytes)).await?,
        }
        let is_won = turn.conn.affected_rows() == 1;
        turn.done();
        Ok(is_won)
    }

    async fn nudge(&mut self) -> Result<(), EngineError> {
        let mut turn = self.turn().await?;
        turn.conn.exec_drop(NUDGE, (&self.group,)).await?;
        turn.has_nudged();
        turn.done();
        Ok(())
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
        let mut turn = self.turn().await?;
        let sessions = turn.sessions(&self.group).await?;
        self.counts = self.counts.wrapping_add(1);
        if self.counts.is_multiple_of(sessions::TIDY_AFTER) {
            turn.conn.exec_drop(sessions::TIDY, (&self.group,)).await?;
        }
        turn.done();
        Ok(Some(self.untagged.count(&sessions)))
    }

    async fn fence(&mut self, member: MemberId) -> Result<(), EngineError> {
        let mut turn = self.turn().await?;
        let sessions = turn.sessions(&self.group).await?;
        let of_member = sessions
            .iter()
            .filter(|(_, owner)| *owner == Some(member.0));
        for (id, _) in of_member {
            turn.end(*id).await?;
        }
        turn.done();
        Ok(())
    }

    fn only_look(&mut self) {
        self.only_looks = true;
        self.has_cells = true;
    }

    async fn groups(&mut self) -> Result<Option<Vec<String>>, EngineError> {
        let mut turn = self.turn().await?;
        let names = turn.conn.query(GROUPS).await?;
        turn.done();
        Ok(Some(names))
    }
}

impl fmt::Debug for Mysql {
    /// Leaves out the options, which contain the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mysql")
            .field("group", &self.group)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
