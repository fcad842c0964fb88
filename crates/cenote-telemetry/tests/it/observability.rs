//! The dashboard and the alert rules, against the exported names and in a real Prometheus.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use cenote::{Closures, Pool};
use cenote_fleet::engine::{Engine, EngineError, Snapshot};
use cenote_fleet::{Fleet, Memory};
use cenote_servers::Server;
use cenote_telemetry::{Pools, Prometheus};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::client::{encode, get};

/// A hundred times a tenth of a second is enough on a busy machine; this is six times as long.
const TRIES: usize = 600;
const PAUSE: Duration = Duration::from_millis(100);

fn read(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../observability");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// Returns the queries of the dashboard, with the variables filled in.
fn queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries = targets.map(|target| {
        let query = target["expr"].as_str().unwrap();
        let query = query.replace("$__rate_interval", "1m");
        query.replace("$__range", "1h").replace("$pool", ".*")
    });
    queries.collect()
}

/// Returns the words that look like a metric of ours.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let words = text.split(|it| !is_part(it));
    let ours = words.filter(|word| word.starts_with("cenote_"));
    ours.map(str::to_owned).collect()
}

#[tokio::test]
async fn the_dashboard_and_the_rules_name_only_metrics_that_are_exported() {
    let pool = Pool::from_fn(async || Ok::<_, &str>(())).build().unwrap();
    let fleet = Fleet::on(Memory::new()).join(&pool).await.unwrap();
    let text = Prometheus::new(Pools::of(&pool).fleet(&fleet)).render();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let exported: BTreeSet<_> = lines.map(|it| it.split_once('{').unwrap().0).collect();

    let shown = metrics_in(&read("dashboard.json"));
    let used = metrics_in(&read("alerts.yml"));

    assert!(!used.is_empty() && !shown.is_empty());
    for name in used.union(&shown) {
        assert!(exported.contains(name.as_str()), "{name} is not exported");
    }
    // Sums, counts and the two idle bounds can be looked up; all else is on the dashboard.
    let families = text.lines().filter_map(|it| it.strip_prefix("# TYPE "));
    for family in families.map(|it| it.split(' ').next().unwrap()) {
        let seen = shown.iter().any(|name| name.starts_with(family));
        assert!(seen || family.contains("_idle_"), "{family} is not shown");
    }
}

#[test]
fn every_alert_is_explained() {
    let (rules, readme) = (read("alerts.yml"), read("README.md"));

    let alerts = alerts(&rules);

    assert!(alerts.len() >= 4);
    for alert in alerts {
        assert!(readme.contains(&format!("| `{alert}` |")), "{alert}");
    }
}

fn alerts(rules: &str) -> BTreeSet<&str> {
    let lines = rules.lines().map(str::trim);
    lines
        .filter_map(|it| it.strip_prefix("- alert: "))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_prometheus_scrapes_runs_every_query_and_fires_every_alert() {
    let busy = Pool::from_fn(async || Ok::<_, &str>(())).name("a \"busy\" one");
    let busy = busy.max_size(1).stuck_after(Duration::from_millis(200));
    let busy = busy.leak_after(Duration::from_millis(200)).build().unwrap();
    let down = Pool::from_fn(async || Err::<(), _>("refused")).name("down");
    let down = down.build().unwrap();
    let fleets = Fleets::new().await;
    let pools = Pools::of(&busy).and(&down);
    let target = serve(Prometheus::new(fleets.add_to(pools))).await;
    let rules = read("alerts.yml");
    let server = cenote_servers::prometheus::start(target, &at_once(&rules)).unwrap();

    // The counters have to be seen at zero, so that they can be seen to grow.
    for counter in ["leaks", "timeouts", "open_failures"] {
        until(&server, || {
            series(&server, &format!("cenote_{counter}_total == 0")) == 4
        })
        .await;
    }
    let lapses = "cenote_fleet_lapses_total == 0";
    until(&server, || series(&server, lapses) == 2).await;
    let trouble = tokio::spawn(make_trouble(busy, down));
    let fleet_trouble = tokio::spawn(fleets.make_trouble());

    until(&server, || firing(&server) == alerts(&rules).len()).await;
    for query in queries() {
        let found = series(&server, &query);
        // A filter may leave nothing.
        assert!(found > 0 || query.contains(" > 0"), "no series: {query}");
    }
    let name = encode("cenote_resources_max{pool=\"a \\\"busy\\\" one\"}");
    let found = ask(&server, &format!("/api/v1/query?query={name}"));
    assert_eq!(found["result"][0]["value"][1], "1", "{found}");
    trouble.abort();
    fleet_trouble.abort();
}

/// Rules without `for`, so that an alert fires as soon as it is seen.
fn at_once(rules: &str) -> String {
    let lines = rules
        .lines()
        .filter(|line| !line.trim().starts_with("for: "));
    lines.map(|line| format!("{line}\n")).collect()
}

async fn serve(prometheus: Prometheus) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app: Router = Router::new().merge(prometheus.routes());
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// Holds the only resource of one pool while callers wait and time out, and opens in vain in the
/// other one, until it is aborted.
async fn make_trouble(busy: Pool<Closures<()>>, down: Pool<Closures<()>>) {
    let _held = busy.acquire().await.unwrap();
    let wait = async {
        loop {
            let _ = busy.acquire_within(Duration::from_secs(600)).await;
        }
    };
    let time_out = async {
        loop {
            let _ = busy.acquire_within(Duration::from_millis(50)).await;
        }
    };
    let open = async {
        loop {
            let _ = down.acquire_within(Duration::from_millis(50)).await;
            sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::join!(wait, time_out, open);
}

/// A pool whose fleet loses its engine, and one whose fleet is told a lower capacity while all of
/// it is out.
struct Fleets {
    pools: [Pool<Closures<()>>; 2],
    fleets: [Fleet; 2],
    shared: Memory,
    is_away: Arc<AtomicBool>,
}

impl Fleets {
    async fn new() -> Self {
        let pool = |name| Pool::from_fn(async || Ok::<_, &str>(())).name(name);
        let pools = ["cut off", "short"].map(|name| pool(name).build().unwrap());
        let (shared, is_away) = (Memory::new(), Arc::default());
        let far = Far {
            memory: Memory::new(),
            is_away: Arc::clone(&is_away),
        };
        let far = Fleet::on(far).ttl(Duration::from_secs(1));
        let near = Fleet::on(shared.clone()).capacity(3);
        let fleets = [
            far.join(&pools[0]).await.unwrap(),
            near.join(&pools[1]).await.unwrap(),
        ];
        Self {
            pools,
            fleets,
            shared,
            is_away,
        }
    }

    fn add_to(&self, pools: Pools) -> Pools {
        let (pools, fleets) = (pools.and(&self.pools[0]).and(&self.pools[1]), &self.fleets);
        pools.fleet(&fleets[0]).fleet(&fleets[1])
    }

    /// Goes on until it is aborted.
    async fn make_trouble(self) {
        self.is_away.store(true, Ordering::Relaxed);
        let short = &self.pools[1];
        let acquire = || short.acquire_within(Duration::from_secs(600));
        let _held = tokio::try_join!(acquire(), acquire(), acquire()).unwrap();
        let other = Pool::from_fn(async || Ok::<_, &str>(())).build().unwrap();
        let other = Fleet::on(self.shared.clone()).capacity(2).join(&other);
        let _other = other.await.unwrap();
        let _ = acquire().await;
    }
}

/// An engine that can be away.
struct Far {
    memory: Memory,
    is_away: Arc<AtomicBool>,
}

impl Engine for Far {
    type Version = u64;

    async fn read(&mut self) -> Result<Snapshot<u64>, EngineError> {
        match self.is_away.load(Ordering::Relaxed) {
            true => Err("it is away".into()),
            false => self.memory.read().await,
        }
    }

    async fn swap(&mut self, version: &u64, bytes: &[u8]) -> Result<bool, EngineError> {
        self.memory.swap(version, bytes).await
    }

    async fn nudge(&mut self) -> Result<(), EngineError> {
        self.memory.nudge().await
    }
}

async fn until(server: &Server, holds: impl Fn() -> bool) {
    for _ in 0..TRIES {
        if holds() {
            return;
        }
        sleep(PAUSE).await;
    }
    let alerts = ask(server, "/api/v1/alerts");
    panic!("alerts: {alerts}\nlog: {}", server.log());
}

/// Returns how many rules have an alert that fires.
fn firing(server: &Server) -> usize {
    let alerts = ask(server, "/api/v1/alerts");
    let alerts = alerts["alerts"].as_array().unwrap().iter();
    let firing = alerts.filter(|alert| alert["state"] == "firing");
    let names = firing.map(|alert| alert["labels"]["alertname"].to_string());
    names.collect::<BTreeSet<_>>().len()
}

/// Returns how many series the query finds.
fn series(server: &Server, query: &str) -> usize {
    let found = ask(server, &format!("/api/v1/query?query={}", encode(query)));
    found["result"].as_array().unwrap().len()
}

fn ask(server: &Server, path: &str) -> Value {
    let mut reply: Value = serde_json::from_str(&get(server.addr(), path)).unwrap();
    assert_eq!(reply["status"], "success", "{path}: {reply}");
    reply["data"].take()
}
