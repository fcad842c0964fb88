//! A database with a user of its own, and a look at its sessions from outside.

use std::sync::Arc;

use cenote::Pool;
use cenote_fleet::{Joining, Mysql};
use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_mysql::mysql_async::{Conn, Opts, OptsBuilder};
use tokio::sync::Mutex;

use crate::live::LIMIT;

const SESSIONS: &str = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app'";

/// What the documentation says that the user needs, if there is no migration.
const USER: &str = "CREATE DATABASE shop; CREATE USER app@'%'; \
     GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON shop.* TO app@'%'";

pub(crate) struct Database {
    /// Of the user of the fleet.
    pub(crate) options: Opts,
    /// Of the user that sees all.
    root: Opts,
    observer: Arc<Mutex<Option<Conn>>>,
}

impl Database {
    pub(crate) async fn at(url: &str) -> Self {
        let root = OptsBuilder::from_opts(Opts::from_url(url).unwrap()).prefer_socket(false);
        let mut admin = Conn::new(root.clone()).await.unwrap();
        admin.query_drop(USER).await.unwrap();
        let root = root.db_name(Some("shop"));
        Self {
            options: root.clone().user(Some("app")).into(),
            root: root.into(),
            observer: Arc::default(),
        }
    }

    pub(crate) fn pool(&self, joining: &Joining<Mysql>) -> Pool<cenote_mysql::Mysql> {
        let pool = cenote_mysql::Pool::with_options(joining.tagged(&self.options));
        let pool = pool.acquire_timeout(LIMIT).open_timeout(LIMIT);
        Pool::clone(&pool.build().unwrap())
    }

    pub(crate) async fn admin(&self) -> Conn {
        Conn::new(self.root.clone()).await.unwrap()
    }

    pub(crate) async fn run(&self, sql: &str) {
        self.admin().await.query_drop(sql).await.unwrap();
    }

    /// Counts the sessions of the user. A server that is down has none.
    pub(crate) async fn sessions(&self) -> u32 {
        let mut place = self.observer.lock().await;
        let conn = match place.take() {
            Some(conn) => Ok(conn),
            None => Conn::new(self.root.clone()).await,
        };
        let Ok(mut conn) = conn else {
            return 0;
        };
        let Ok(count) = conn.query_first(SESSIONS).await else {
            return 0;
        };
        *place = Some(conn);
        count.unwrap()
    }
}
