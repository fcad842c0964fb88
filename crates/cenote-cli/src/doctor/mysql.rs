//! The checks of MySQL and MariaDB.

use std::time::{Duration, SystemTime};

use cenote_mysql::Lease;
use cenote_mysql::mysql_async::prelude::Queryable;

use super::finding::{Finding, Severity};
use super::{Plan, shared};
use crate::clock::now;
use crate::failure::Failure;
use crate::target::mysql::{open, places, variable};

/// So many round trips are measured.
const TRIPS: usize = 20;

pub(super) async fn look(url: &str, plan: &Plan) -> Result<Vec<Finding>, Failure> {
    let pool = open(url, Plan::own_config()).await?;
    let mut lease = pool.acquire().await?;
    let ours = pool.status().total as u64;
    let found = vec![
        version(&mut lease).await?,
        shared::places(places(&mut lease, ours).await?, plan, "max_connections"),
        user_limit(&mut lease, plan).await?,
        wait_timeout(&mut lease, plan).await?,
        interactive_timeout(&mut lease).await?,
        tls(&mut lease, url).await?,
        clock(&mut lease).await?,
        latency(&mut lease).await?,
        privileges(&mut lease).await?,
    ];
    drop(lease);
    pool.close_within(Duration::from_secs(5)).await;
    Ok(found)
}

async fn version(lease: &mut Lease) -> Result<Finding, Failure> {
    let version: Option<String> = lease.query_first("SELECT VERSION()").await?;
    Ok(Finding::ok("server", version.unwrap_or_default()))
}

async fn seconds(lease: &mut Lease, name: &str) -> Result<Option<Duration>, Failure> {
    let value = variable(lease, name).await?;
    let seconds = value.and_then(|text| text.parse().ok());
    Ok(seconds.filter(|it| *it > 0).map(Duration::from_secs))
}

async fn user_limit(lease: &mut Lease, plan: &Plan) -> Result<Finding, Failure> {
    let (check, name) = ("user limit", "max_user_connections");
    let limit = variable(lease, name).await?;
    let limit: u64 = limit.and_then(|text| text.parse().ok()).unwrap_or(0);
    let wanted = plan.config.max_size as u64 * u64::from(plan.instances);
    let evidence = match limit {
        0 => format!("`{name}` is off"),
        limit => format!("`{name}` is {limit}, all instances may open {wanted}"),
    };
    if limit == 0 || wanted <= limit {
        return Ok(Finding::ok(check, evidence));
    }
    let fix = format!("lower `max_size`, or raise `{name}`");
    Ok(Finding::new(Severity::Problem, check, evidence, fix))
}

async fn wait_timeout(lease: &mut Lease, plan: &Plan) -> Result<Finding, Failure> {
    let limit = seconds(lease, "wait_timeout").await?;
    Ok(shared::idle_limit(
        "idle sessions",
        "wait_timeout",
        limit,
        plan,
    ))
}

/// Drivers are not interactive. A value that differs only confuses an operator who tries things out
/// by hand.
async fn interactive_timeout(lease: &mut Lease) -> Result<Finding, Failure> {
    let interactive = seconds(lease, "interactive_timeout").await?;
    let shown = interactive.map_or("off".to_owned(), |limit| format!("{limit:?}"));
    let evidence = format!("`interactive_timeout` is {shown}; it does not apply to pools");
    Ok(Finding::ok("interactive", evidence))
}

async fn tls(lease: &mut Lease, url: &str) -> Result<Finding, Failure> {
    let cipher: Option<(String, String)> =
        lease.query_first("SHOW STATUS LIKE 'Ssl_cipher'").await?;
    let cipher = cipher.map(|(_, cipher)| cipher).filter(|it| !it.is_empty());
    let fix = "add `?require_ssl=true` to the URL, and a certificate to the server";
    Ok(shared::tls(cipher.as_deref(), shared::is_here(url), fix))
}

async fn clock(lease: &mut Lease) -> Result<Finding, Failure> {
    let before = SystemTime::now();
    let server: Option<f64> = lease
        .query_first("SELECT CAST(UNIX_TIMESTAMP(NOW(6)) AS DOUBLE)")
        .await?;
    Ok(shared::clock(
        server.unwrap_or_default(),
        before,
        SystemTime::now(),
    ))
}

async fn latency(lease: &mut Lease) -> Result<Finding, Failure> {
    let mut trips = Vec::new();
    for _ in 0..TRIPS {
        let started = now();
        lease.ping().await?;
        trips.push(started.elapsed());
    }
    Ok(shared::latency(trips))
}

async fn privileges(lease: &mut Lease) -> Result<Finding, Failure> {
    let grants: Vec<String> = lease.query("SHOW GRANTS").await?;
    let user: Option<String> = lease.query_first("SELECT CURRENT_USER()").await?;
    let user = user.unwrap_or_default();
    let has = |name: &str| {
        let global = grants.iter().filter(|grant| grant.contains(" ON *.* "));
        let mut named = global.map(|grant| grant.to_uppercase());
        named.any(|grant| grant.contains(name) || grant.contains("ALL PRIVILEGES"))
    };
    let kills = ["SUPER", "CONNECTION ADMIN", "CONNECTION_ADMIN"]
        .iter()
        .any(|name| has(name));
    Ok(match (kills, has("PROCESS")) {
        (true, true) => Finding::ok(
            "privileges",
            format!("`{user}` may see and end sessions of others"),
        ),
        _ => Finding::new(
            Severity::Note,
            "privileges",
            format!("`{user}` may see and end its own sessions only"),
            "enough if all instances log in as this user; else grant `CONNECTION ADMIN` and `PROCESS`",
        ),
    })
}
