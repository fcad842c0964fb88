//! A client beside the pool.

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, FromRedisValue, cmd};

use crate::{LIMIT, eventually};

#[derive(Clone)]
pub(crate) struct Admin(pub(crate) MultiplexedConnection);

impl Admin {
    pub(crate) async fn of(url: &str) -> Self {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(LIMIT))
            .set_response_timeout(Some(LIMIT));
        let client = Client::open(url).unwrap();
        let connection = client.get_multiplexed_async_connection_with_config(&config);
        Self(connection.await.unwrap())
    }

    pub(crate) async fn say<T: FromRedisValue>(&mut self, text: &str) -> T {
        let mut words = text.split(' ');
        let mut command = cmd(words.next().unwrap());
        command.arg(words.collect::<Vec<_>>());
        command.query_async(&mut self.0).await.unwrap()
    }

    /// Ends the connection with this number.
    pub(crate) async fn kill(&mut self, id: u64) {
        let killed: usize = self.say(&format!("CLIENT KILL ID {id}")).await;
        assert_eq!(killed, 1);
    }

    /// Ends all other connections, and returns how many there were.
    pub(crate) async fn kill_all(&mut self) -> usize {
        self.say("CLIENT KILL TYPE normal SKIPME yes").await
    }

    /// Returns what the server says about its other clients.
    pub(crate) async fn others(&mut self) -> Vec<String> {
        let own: u64 = self.say("CLIENT ID").await;
        let own = format!("id={own} ");
        let list: String = self.say("CLIENT LIST").await;
        let others = list.lines().filter(|line| !line.starts_with(&own));
        others.map(str::to_owned).collect()
    }

    /// Waits until the server has this many other clients that run `command`.
    pub(crate) async fn sees(&mut self, count: usize, command: &str) {
        let wanted = format!("cmd={command} ");
        eventually(&format!("{count} clients run {command}"), async || {
            let others = self.others().await;
            let runs = others.iter().filter(|line| line.contains(&wanted));
            runs.count() == count
        })
        .await;
    }
}
