//! The servers of a play: the database whose connections are shared, and the engine that keeps the
//! cell.

use cenote_servers::{Server, nats, redis};

use super::GROUP;
use super::database::{Database, Row, Wall};
use crate::files::Files;
use crate::nats::{BUCKET, connect, put};

/// An engine, and who counts the sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Postgres,
    Mariadb,
    /// Redis keeps the cell, and PostgreSQL counts.
    Redis,
    /// NATS keeps the cell, and MariaDB counts.
    Nats,
    /// Nothing is counted. The pooled connections are those of PostgreSQL.
    RedisAlone,
    /// Nothing is counted. The pooled connections are those of MariaDB.
    NatsAlone,
}

pub(super) struct Stage {
    engine: Engine,
    pub(super) database: Database,
    keeper: Keeper,
}

/// The server of the cell.
enum Keeper {
    Database,
    Redis(Server),
    Nats(Server),
}

/// An older cell.
pub(super) enum Old {
    Row(Row),
    Files(Files),
}

impl Stage {
    pub(super) async fn build(engine: Engine, wall: Wall) -> Self {
        let database = match engine {
            Engine::Postgres | Engine::Redis | Engine::RedisAlone => Database::postgres(wall).await,
            Engine::Mariadb | Engine::Nats | Engine::NatsAlone => Database::mariadb(wall).await,
        };
        let keeper = match engine {
            Engine::Postgres | Engine::Mariadb => Keeper::Database,
            Engine::Redis | Engine::RedisAlone => {
                let server = redis::start().unwrap();
                // The group is known to be new.
                let new = ::redis::Cmd::set(format!("cenote_fleet:{GROUP}"), "");
                ask_redis(&server, new).await;
                Keeper::Redis(server)
            }
            Engine::Nats | Engine::NatsAlone => {
                let server = nats::start().unwrap();
                put(&connect(server.url()).await, Vec::new()).await;
                Keeper::Nats(server)
            }
        };
        Self {
            engine,
            database,
            keeper,
        }
    }

    pub(super) fn is_counted(&self) -> bool {
        !matches!(self.engine, Engine::RedisAlone | Engine::NatsAlone)
    }

    /// The URLs of the members: that of the database, and that of the engine if it is another one.
    pub(super) fn urls(&self) -> Vec<String> {
        let keeper = match &self.keeper {
            Keeper::Database => None,
            Keeper::Redis(server) | Keeper::Nats(server) => Some(server.url().to_owned()),
        };
        [self.database.url()].into_iter().chain(keeper).collect()
    }

    /// Restarts the engine.
    pub(super) fn restart(&mut self) {
        match &mut self.keeper {
            Keeper::Database => self.database.restart(),
            Keeper::Redis(server) | Keeper::Nats(server) => server.restart().unwrap(),
        }
    }

    /// Loses the cell.
    pub(super) async fn wipe(&mut self) {
        match &self.keeper {
            Keeper::Database => {
                let mut admin = self.database.admin().await;
                admin.run("delete from cenote_fleet").await;
            }
            Keeper::Redis(server) => ask_redis(server, ::redis::cmd("FLUSHALL")).await,
            Keeper::Nats(server) => {
                // It may be gone.
                let _ = connect(server.url()).await.delete_key_value(BUCKET).await;
            }
        }
    }

    /// Remembers the cell as it is now.
    pub(super) async fn save(&mut self) -> Option<Old> {
        match &mut self.keeper {
            Keeper::Database => self.database.admin().await.row().await.map(Old::Row),
            Keeper::Redis(server) => {
                let log = server.folder().join("appendonlydir");
                Some(Old::Files(Files::of(log)))
            }
            Keeper::Nats(server) => {
                server.stop().unwrap();
                let files = Files::of(server.folder().join("data"));
                server.restart().unwrap();
                Some(Old::Files(files))
            }
        }
    }

    /// Puts an older cell back. Redis and NATS start with older files.
    pub(super) async fn put_back(&mut self, old: &Old) {
        match (&mut self.keeper, old) {
            (Keeper::Redis(server) | Keeper::Nats(server), Old::Files(files)) => {
                server.stop().unwrap();
                files.put_back();
                server.restart().unwrap();
            }
            (_, Old::Row(row)) => self.database.admin().await.put_back(row).await,
            (Keeper::Database, Old::Files(_)) => unreachable!("a database saves its row"),
        }
    }
}

async fn ask_redis(server: &Server, command: ::redis::Cmd) {
    let client = ::redis::Client::open(server.url()).unwrap();
    let conn = client.get_multiplexed_async_connection().await;
    let () = command.query_async(&mut conn.unwrap()).await.unwrap();
}
