//! What the tests on PostgreSQL share.

use tokio_postgres::{Client, Config, NoTls};

use crate::eventually;

/// Returns the configuration for a server, with a name by which the server knows its clients.
pub(crate) fn config(url: &str, name: &str) -> Config {
    let mut config: Config = url.parse().unwrap();
    config.application_name(name);
    config
}

/// A client beside the pool.
pub(crate) struct Admin(Client);

impl Admin {
    pub(crate) async fn of(url: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        Self(client)
    }

    /// Ends the server's process for a client, and waits until both sides know it.
    pub(crate) async fn kill(&self, client: &Client) {
        self.kill_pid(pid(client).await).await;
        eventually("the client knows", async || client.is_closed()).await;
    }

    /// Ends a process of the server.
    pub(crate) async fn kill_pid(&self, pid: i32) {
        let kill = "select pg_terminate_backend($1)";
        self.0.execute(kill, &[&pid]).await.unwrap();
    }

    /// Returns how many clients of this name the server has.
    pub(crate) async fn count(&self, name: &str) -> usize {
        let count = "select count(*) from pg_stat_activity where application_name = $1";
        let row = self.0.query_one(count, &[&name]).await.unwrap();
        usize::try_from(row.get::<_, i64>(0)).unwrap()
    }
}

/// Returns the number of the server's process for a client.
pub(crate) async fn pid(client: &Client) -> i32 {
    let row = client.query_one("select pg_backend_pid()", &[]).await;
    row.unwrap().get(0)
}
