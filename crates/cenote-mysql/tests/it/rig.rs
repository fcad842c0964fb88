//! A pool on a database of its own.

use std::time::Duration;

use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_mysql::mysql_async::{Conn, Opts, OptsBuilder};
use cenote_mysql::{Builder, Lease, Pool};
use cenote_servers::Found;

use crate::eventually;

/// Long enough for a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Rig {
    pub(crate) pool: Pool,
    /// The URL of the server, without a database.
    pub(crate) url: String,
    /// The database, by which the server also tells the sessions of this test apart.
    pub(crate) mark: String,
    _server: Option<Found>,
}

impl Rig {
    /// On the server that all tests share. No other test may use `name`.
    pub(crate) async fn new(name: &str) -> Self {
        Self::with(name, |builder| builder).await
    }

    pub(crate) async fn with(name: &str, customize: impl FnOnce(Builder) -> Builder) -> Self {
        let server = cenote_servers::mariadb::find().unwrap();
        let url = server.url().to_owned();
        let mut rig = Self::on(&url, name, |url| customize(Pool::from_url(url))).await;
        rig._server = Some(server);
        rig
    }

    /// On the server with this URL. `build` gets the URL of the new database.
    pub(crate) async fn on(url: &str, name: &str, build: impl FnOnce(String) -> Builder) -> Self {
        let mark = format!("cenote_my_{name}");
        let mut admin = admin(url).await;
        let make = format!("DROP DATABASE IF EXISTS {mark}; CREATE DATABASE {mark}");
        admin.query_drop(make).await.unwrap();
        let table = format!("CREATE TABLE {mark}.t (a INT PRIMARY KEY, b INT) ENGINE = InnoDB");
        admin.query_drop(table).await.unwrap();
        let builder = build(format!("{}/{mark}", url.trim_end_matches('/')));
        let pool = builder.acquire_timeout(PATIENCE).open_timeout(PATIENCE);
        Self {
            pool: pool.build().unwrap(),
            url: url.to_owned(),
            mark,
            _server: None,
        }
    }

    /// Returns a connection beside the pool, without its mark.
    pub(crate) async fn admin(&self) -> Conn {
        admin(&self.url).await
    }

    pub(crate) async fn acquire(&self) -> Lease {
        self.pool.acquire().await.unwrap()
    }

    /// Returns the rows of the table, by a connection beside the pool.
    pub(crate) async fn rows(&self) -> Vec<i32> {
        let sql = format!("SELECT a FROM {}.t ORDER BY a", self.mark);
        self.admin().await.query(sql).await.unwrap()
    }

    /// Returns how many sessions of this test the server has.
    pub(crate) async fn sessions(&self) -> usize {
        let mut admin = self.admin().await;
        sessions(&mut admin, &self.mark).await
    }

    /// Waits until the server runs a statement of this test with this text in it.
    pub(crate) async fn runs(&self, text: &str) {
        let mut admin = self.admin().await;
        eventually("the statement runs", async || {
            running(&mut admin, &self.mark, text).await > 0
        })
        .await;
    }

    /// Waits until the server runs no statement of this test with this text in it.
    pub(crate) async fn stops(&self, text: &str) {
        let mut admin = self.admin().await;
        eventually("the statement stops", async || {
            running(&mut admin, &self.mark, text).await == 0
        })
        .await;
    }

    /// Kills a session on the server, and waits until the server has none of its number.
    pub(crate) async fn kill(&self, id: u32) {
        kill(&mut self.admin().await, id).await;
    }
}

/// Waits until the server is surely older than the sessions that are opened next. Only those can be
/// killed.
pub(crate) async fn grown_up(url: &str) {
    let mut admin = admin(url).await;
    eventually("the server has run for a while", async || {
        let uptime = admin.query_first("SHOW GLOBAL STATUS LIKE 'Uptime'").await;
        let (_, seconds): (String, u64) = uptime.unwrap().unwrap();
        seconds > 3
    })
    .await;
}

/// Connects without a pool, and without the change to a local socket.
pub(crate) async fn admin(url: &str) -> Conn {
    let options = Opts::from_url(url).unwrap();
    let options = OptsBuilder::from_opts(options).prefer_socket(false);
    Conn::new(options).await.unwrap()
}

pub(crate) async fn sessions(admin: &mut Conn, mark: &str) -> usize {
    let sql = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = ?";
    admin.exec_first(sql, (mark,)).await.unwrap().unwrap()
}

pub(crate) async fn kill(admin: &mut Conn, id: u32) {
    admin.query_drop(format!("KILL {id}")).await.unwrap();
    let sql = format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {id}");
    eventually("the session is gone", async || {
        admin.query_first::<u64, _>(sql.as_str()).await.unwrap() == Some(0)
    })
    .await;
}

async fn running(admin: &mut Conn, mark: &str, text: &str) -> u64 {
    let sql = "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
               WHERE DB = ? AND INFO LIKE CONCAT('%', ?, '%')";
    admin.exec_first(sql, (mark, text)).await.unwrap().unwrap()
}
