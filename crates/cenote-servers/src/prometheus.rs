//! Prometheus: a private one that scrapes one target and evaluates rules.

use std::fs;
use std::io;
use std::net::SocketAddr;

use crate::home::Home;
use crate::program::obtain_or;
use crate::server::{Recipe, Server};

/// Starts a private server that scrapes `/metrics` of the target and evaluates these alert rules,
/// both several times a second. It refuses to start with rules that it cannot read.
pub fn start(target: SocketAddr, rules: &str) -> io::Result<Server> {
    let cure = "run `apt-get install prometheus` as root";
    let program = obtain_or("prometheus", "prometheus", cure)?;
    let args = |home: &Home, port: u16| {
        fs::write(home.join("rules.yml"), rules)?;
        fs::write(home.join("prometheus.yml"), configuration(target))?;
        let path = |name| home.join(name).to_string_lossy().into_owned();
        Ok(vec![
            format!("--config.file={}", path("prometheus.yml")),
            format!("--storage.tsdb.path={}", path("data")),
            format!("--web.listen-address=127.0.0.1:{port}"),
        ])
    };
    let recipe = Recipe {
        program,
        args: &args,
        ready: "Server is ready to receive web requests",
        stop: "TERM",
        url: ("http://", ""),
        clean_up: |_| {},
    };
    // It needs no user of its own.
    Server::start(Home::new("nobody")?, recipe)
}

fn configuration(target: SocketAddr) -> String {
    format!(
        "global:\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\n  evaluation_interval: 200ms\n\
         rule_files:\n  - rules.yml\n\
         scrape_configs:\n  - job_name: test\n    static_configs:\n      - targets: ['{target}']\n"
    )
}
