//! A real MariaDB server keeps the cell, counts its sessions, and ends those of silent members.

mod observed;

use std::sync::Mutex;

use cenote_fleet::{Fleet, JoinError};
use cenote_mysql::Mysql;
use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_servers::Server;
pub(crate) use observed::Database;

use crate::live::{Place, Seat};
use crate::suite::suite;

suite!(OnMariadb);

struct OnMariadb {
    server: Mutex<Server>,
    database: Database,
    saved: Vec<u8>,
}

impl Place for OnMariadb {
    type Manager = Mysql;

    const OVERHEAD: u32 = 2;
    const FENCES: bool = true;
    const LEARNS_AFTER_RESTART: bool = true;

    async fn start() -> Self {
        let server = cenote_servers::mariadb::start().unwrap();
        Self {
            database: Database::at(server.url()).await,
            server: Mutex::new(server),
            saved: Vec::new(),
        }
    }

    async fn try_join(&self) -> Result<Seat<Mysql>, JoinError> {
        let joining = Fleet::mysql(&self.database.options, "orders").unwrap();
        let pool = self.database.pool(&joining);
        Seat::take(joining.overhead(1), &pool).await
    }

    async fn count(&self) -> u32 {
        self.database.sessions().await
    }

    fn restart(&self) {
        self.server.lock().unwrap().restart().unwrap();
    }

    async fn wipe(&self) {
        self.database.run("DELETE FROM cenote_fleet").await;
    }

    async fn save(&mut self) {
        let mut admin = self.database.admin().await;
        let cell = admin.query_first("SELECT cell FROM cenote_fleet").await;
        self.saved = cell.unwrap().unwrap();
    }

    async fn put_back(&self) {
        let mut admin = self.database.admin().await;
        let sql = "UPDATE cenote_fleet SET cell = ?";
        admin.exec_drop(sql, (&self.saved,)).await.unwrap();
    }
}
