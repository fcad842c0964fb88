//! The database whose connections are shared, seen from outside: its limit, and its sessions.

use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_mysql::mysql_async::{self, Conn};
use cenote_servers::{Server, mariadb, postgres};
use tokio_postgres::{Client, NoTls};

use super::CAPACITY;

const POSTGRES_SESSIONS: &str = "select count(*) from pg_stat_activity \
     where usename = 'app' and backend_type = 'client backend'";

/// One that logs in may still be refused, and is killed then. One that ends gives its place up
/// before it leaves the list.
const MARIADB_SESSIONS: &str = "select count(*) from information_schema.processlist \
     where user = 'app' and command not in ('Connect', 'Killed', 'Quit')";

/// The limit that the server itself has for the user of the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wall {
    None,
    Capacity,
}

pub(super) enum Database {
    Postgres(Server),
    Mariadb(Server),
}

impl Database {
    pub(super) async fn postgres(wall: Wall) -> Self {
        let limit = match wall {
            Wall::None => -1,
            Wall::Capacity => CAPACITY as i32,
        };
        let database = Self::Postgres(postgres::start().unwrap());
        let user = format!(
            "create role app login connection limit {limit}; \
             grant create on schema public to app; \
             grant execute on function pg_control_system() to app"
        );
        database.admin().await.run(&user).await;
        database
    }

    pub(super) async fn mariadb(wall: Wall) -> Self {
        let limit = match wall {
            Wall::None => 0,
            Wall::Capacity => CAPACITY,
        };
        let server = mariadb::start().unwrap();
        let options = mysql_async::Opts::from_url(server.url()).unwrap();
        let user = format!(
            "CREATE DATABASE shop; CREATE USER app@'%' WITH MAX_USER_CONNECTIONS {limit}; \
             GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON shop.* TO app@'%'"
        );
        let mut root = Conn::new(options).await.unwrap();
        root.query_drop(user).await.unwrap();
        Self::Mariadb(server)
    }

    /// The URL of the members.
    pub(super) fn url(&self) -> String {
        match self {
            Self::Postgres(server) => server.url().replace("postgres@", "app@"),
            Self::Mariadb(_) => self.root_url().replace("root@", "app@"),
        }
    }

    fn root_url(&self) -> String {
        match self {
            Self::Postgres(server) => server.url().to_owned(),
            // The driver would leave the proxy for a socket of the same machine.
            Self::Mariadb(server) => format!("{}/shop?prefer_socket=false", server.url()),
        }
    }

    pub(super) fn restart(&mut self) {
        let (Self::Postgres(server) | Self::Mariadb(server)) = self;
        server.restart().unwrap();
    }

    /// Connects as a user that sees all.
    pub(super) async fn admin(&self) -> Admin {
        let url = self.root_url();
        match self {
            Self::Postgres(_) => {
                let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
                tokio::spawn(connection);
                Admin::Postgres(client)
            }
            Self::Mariadb(_) => {
                let options = mysql_async::Opts::from_url(&url).unwrap();
                Admin::Mariadb(Box::new(Conn::new(options).await.unwrap()))
            }
        }
    }
}

pub(super) enum Admin {
    Postgres(Client),
    Mariadb(Box<Conn>),
}

/// The row of the cell. Only PostgreSQL has a version.
pub(super) type Row = (i64, Vec<u8>);

impl Admin {
    /// Counts the sessions of the members. Returns `None` if the server is down.
    pub(super) async fn sessions(&mut self) -> Option<u32> {
        match self {
            Self::Postgres(client) => {
                let row = client.query_one(POSTGRES_SESSIONS, &[]).await.ok()?;
                Some(row.get::<_, i64>(0) as u32)
            }
            Self::Mariadb(conn) => conn.query_first(MARIADB_SESSIONS).await.ok()?,
        }
    }

    pub(super) async fn run(&mut self, sql: &str) {
        match self {
            Self::Postgres(client) => client.batch_execute(sql).await.unwrap(),
            Self::Mariadb(conn) => conn.query_drop(sql).await.unwrap(),
        }
    }

    pub(super) async fn row(&mut self) -> Option<Row> {
        match self {
            Self::Postgres(client) => {
                let sql = "select version, cell from cenote_fleet";
                let row = client.query_opt(sql, &[]).await.unwrap()?;
                Some((row.get(0), row.get(1)))
            }
            Self::Mariadb(conn) => {
                let sql = "select 0, cell from cenote_fleet";
                conn.query_first(sql).await.unwrap()
            }
        }
    }

    pub(super) async fn put_back(&mut self, (version, cell): &Row) {
        match self {
            Self::Postgres(client) => {
                let sql = "update cenote_fleet set version = $1, cell = $2";
                client.execute(sql, &[version, cell]).await.unwrap();
            }
            Self::Mariadb(conn) => {
                let sql = "update cenote_fleet set cell = ?";
                conn.exec_drop(sql, (cell,)).await.unwrap();
            }
        }
    }
}
