//! Redis as the engine: the cell is one string, swapped by a script.

use std::fmt;

use futures_util::StreamExt;
use redis::aio::{MultiplexedConnection, PubSubStream};
use redis::{AsyncConnectionConfig, Client, FromRedisValue, cmd};

use crate::engine::{Engine, EngineError, Snapshot};
use crate::fleet::{Fleet, Joining};
use crate::group::{self, GroupError};

/// A script is atomic, so the value belongs to the run of the server that is told with it.
const READ: &str = "return {redis.call('INFO', 'server'), redis.call('INFO', 'replication'), \
     redis.call('GET', KEYS[1])}";

/// A value never comes twice, because each has a beat that none had before.
const SWAP: &str = "if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1";

/// Keeps the cell in Redis: in the key `cenote_fleet:GROUP`. The channel of the same name carries
/// the nudges. It has two connections per member.
///
/// A server that was started again, a promoted replica and a restored snapshot have another
/// `run_id`. The members see it, and learn for a TTL what they hold. The client must reach the
/// primary: a replica is refused.
///
/// Sessions of the pool are not counted. [`Joining::counted_by`] adds it.
pub struct Redis {
    client: Client,
    key: String,
    /// Tells own nudges from others.
    voice: u64,
    line: Option<Line>,
}

struct Line {
    conn: MultiplexedConnection,
    nudges: PubSubStream,
}

impl Fleet {
    /// Begins to join a group that is kept in Redis. The group is named by letters, digits, `-` and
    /// `_`, and 40 of them at most.
    ///
    /// A missing key may be one that was lost, so its first members learn for a TTL. For a new
    /// group write an empty value before: `SET cenote_fleet:orders "" NX`.
    ///
    /// The user needs `+eval +get +set +info +publish +subscribe ~cenote_fleet:*
    /// &cenote_fleet:*`.
    ///
    /// ```no_run
    /// # async fn f(pool: cenote_postgres::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_fleet::Fleet;
    ///
    /// let client = redis::Client::open("redis://localhost")?;
    /// let fleet = Fleet::redis(&client, "orders")?.capacity(80).join(&pool).await?;
    /// # drop(fleet);
    /// # Ok(()) }
    /// ```
    pub fn redis(client: &Client, group: &str) -> Result<Joining<Redis>, GroupError> {
        let group = group::named(group)?;
        Ok(Self::on(Redis {
            client: client.clone(),
            key: format!("cenote_fleet:{group}"),
            voice: fastrand::u64(..),
            line: None,
        }))
    }
}

impl Redis {
    /// Takes the connections, or opens them. The caller puts them back after success, so that those
    /// whose call failed or was dropped are closed.
    async fn line(&mut self) -> Result<Line, EngineError> {
        if let Some(line) = self.line.take() {
            return Ok(line);
        }
        // The member has a time limit for each call.
        let config = AsyncConnectionConfig::new();
        let config = config
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let client = &self.client;
        let conn = client.get_multiplexed_async_connection_with_config(&config);
        let conn = conn.await?;
        let mut nudges = client.get_async_pubsub().await?;
        nudges.subscribe(&self.key).await?;
        Ok(Line {
            conn,
            nudges: nudges.into_on_message(),
        })
    }

    async fn ask<T: FromRedisValue>(&mut self, command: &redis::Cmd) -> Result<T, EngineError> {
        let mut line = self.line().await?;
        let answer = command.query_async(&mut line.conn).await?;
        self.line = Some(line);
        Ok(answer)
    }

    fn script(&self, script: &str) -> redis::Cmd {
        let mut command = cmd("EVAL");
        command.arg(script).arg(1).arg(&self.key);
        command
    }
}

impl Engine for Redis {
    /// The value itself.
    type Version = Option<Vec<u8>>;

    async fn read(&mut self) -> Result<Snapshot<Self::Version>, EngineError> {
        let read = self.script(READ);
        let (server, replication, value): (String, String, Option<Vec<u8>>) =
            self.ask(&read).await?;
        if field(&replication, "role") != Some("master") {
            return Err("this server is a replica: the fleet needs the primary".into());
        }
        let run = field(&server, "run_id").and_then(|run| run.get(..16));
        let origin = u64::from_str_radix(run.ok_or("the server did not tell its run_id")?, 16)?;
        Ok(Snapshot::of(origin, value.clone(), value))
    }

    async fn swap(&mut self, version: &Self::Version, bytes: &[u8]) -> Result<bool, EngineError> {
        let mut swap = self.script(SWAP);
        swap.arg(version.as_deref().unwrap_or_default());
        self.ask(swap.arg(bytes)).await
    }

    async fn nudge(&mut self) -> Result<(), EngineError> {
        let mut publish = cmd("PUBLISH");
        publish.arg(&self.key).arg(self.voice);
        self.ask(&publish).await
    }

    async fn nudged(&mut self) {
        while let Some(line) = &mut self.line {
            match line.nudges.next().await {
                Some(nudge) if nudge.get_payload().ok() == Some(self.voice) => {}
                Some(_) => return,
                // The next call opens both connections again.
                None => self.line = None,
            }
        }
        std::future::pending().await
    }
}

/// Returns a field of the answer to `INFO`.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = info.lines().filter_map(|line| line.split_once(':'));
    let field = fields.find(|(field, _)| *field == name);
    field.map(|(_, value)| value.trim_end())
}

impl fmt::Debug for Redis {
    /// Leaves out the client, which contains the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
