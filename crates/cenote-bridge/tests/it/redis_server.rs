//! What the tests on Redis share.

use redis::{Client, Connection, cmd};

/// A client beside the pool, on a server of its own.
pub(crate) struct Admin(Connection);

impl Admin {
    pub(crate) fn of(url: &str) -> Self {
        Self(Client::open(url).unwrap().get_connection().unwrap())
    }

    /// Ends the connection with this number. The server has closed it afterwards.
    pub(crate) fn kill(&mut self, id: u64) {
        let kill = cmd("CLIENT").arg("KILL").arg("ID").arg(id).to_owned();
        let killed: usize = kill.query(&mut self.0).unwrap();
        assert_eq!(killed, 1);
    }

    /// Returns how many other clients the server has.
    pub(crate) fn count(&mut self) -> usize {
        let list: String = cmd("CLIENT").arg("LIST").query(&mut self.0).unwrap();
        list.lines().count() - 1
    }

    pub(crate) fn set(&mut self, key: &str, value: u32) {
        let () = cmd("SET").arg(key).arg(value).query(&mut self.0).unwrap();
    }
}
