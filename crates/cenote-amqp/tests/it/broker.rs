//! A private server, and what its administrator can see and do.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use cenote_amqp::Builder;
use cenote_amqp::lapin::ConnectionProperties;
use cenote_servers::Server;

use crate::builder_at;

pub(crate) struct Broker {
    pub(crate) server: Server,
    node: String,
    cookie: String,
}

/// The private server that several tests share. None of them stops it.
pub(crate) fn shared() -> &'static Broker {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    BROKER.get_or_init(Broker::start)
}

impl Broker {
    pub(crate) fn start() -> Self {
        let server = cenote_servers::rabbitmq::start().unwrap();
        let log = server.log();
        let line = log.lines().find(|line| line.contains("node   ")).unwrap();
        let node = line.rsplit(' ').next().unwrap().to_owned();
        let cookie = fs::read_to_string(server.folder().join(".erlang.cookie")).unwrap();
        Self {
            server,
            node,
            cookie,
        }
    }

    /// A builder whose connections have a name that no other test uses. Returns the name, too.
    pub(crate) fn builder(&self, size: usize) -> (String, Builder) {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("test-{}-end", NUMBER.fetch_add(1, Ordering::Relaxed));
        let properties = ConnectionProperties::default();
        let properties = properties.with_connection_name(name.clone().into());
        let builder = builder_at(self.server.url(), size).properties(properties);
        (name, builder)
    }

    /// The connections of this name: for each, its process and how many channels it has.
    pub(crate) fn connections(&self, name: &str) -> Vec<(String, usize)> {
        let columns = ["list_connections", "pid", "channels", "client_properties"];
        let listed = self.control(&columns);
        let lines = listed.lines().filter(|line| line.contains(name));
        let parts = lines.map(|line| {
            let mut columns = line.split('\t');
            let pid = columns.next().unwrap().to_owned();
            (pid, columns.next().unwrap().parse().unwrap())
        });
        parts.collect()
    }

    /// The administrator closes the connections of this name.
    pub(crate) fn close(&self, name: &str) {
        for (pid, _) in self.connections(name) {
            self.control(&["close_connection", &pid, "by order"]);
        }
    }

    fn control(&self, command: &[&str]) -> String {
        let mut control = Command::new("rabbitmqctl");
        control.args(["-n", &self.node, "--erlang-cookie", &self.cookie, "-q"]);
        let output = control.args(command).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}
