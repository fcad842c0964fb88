//! The checks of PostgreSQL.

use std::time::{Duration, SystemTime};

use cenote_postgres::Lease;

use super::finding::{Finding, Severity};
use super::{Plan, proxy, shared};
use crate::clock::now;
use crate::failure::Failure;
use crate::target::postgres::{open, places, setting};

/// So many round trips are measured.
const TRIPS: usize = 20;

pub(super) async fn look(url: &str, plan: &Plan) -> Result<Vec<Finding>, Failure> {
    let pool = open(url, Plan::own_config()).await?;
    let lease = pool.acquire().await?;
    let mut found = vec![
        version(&lease).await?,
        shared::places(places(&lease).await?, plan, "max_connections"),
        idle_session(&lease, plan).await?,
        idle_in_transaction(&lease).await?,
        keepalive(&lease).await?,
        tls(&lease, url).await?,
        clock(&lease).await?,
        latency(&lease).await?,
        privileges(&lease).await?,
    ];
    drop(lease);
    found.push(proxy::look(url, &pool).await?);
    pool.close_within(Duration::from_secs(5)).await;
    Ok(found)
}

async fn version(lease: &Lease) -> Result<Finding, Failure> {
    let version = setting(lease, "server_version").await?.unwrap_or_default();
    Ok(Finding::ok("server", format!("PostgreSQL {version}")))
}

/// Returns a time limit of the server; zero means that it is off.
async fn limit(lease: &Lease, name: &str) -> Result<Option<Duration>, Failure> {
    let millis = setting(lease, name)
        .await?
        .and_then(|text| text.parse().ok());
    Ok(millis
        .filter(|millis| *millis > 0)
        .map(Duration::from_millis))
}

async fn idle_session(lease: &Lease, plan: &Plan) -> Result<Finding, Failure> {
    let name = "idle_session_timeout";
    let limit = limit(lease, name).await?;
    Ok(shared::idle_limit("idle sessions", name, limit, plan))
}

async fn idle_in_transaction(lease: &Lease) -> Result<Finding, Failure> {
    let (check, name) = ("idle transactions", "idle_in_transaction_session_timeout");
    Ok(match limit(lease, name).await? {
        Some(limit) => Finding::ok(check, format!("`{name}` is {limit:?}")),
        None => Finding::new(
            Severity::Note,
            check,
            format!(
                "`{name}` is off: a client that hangs in a transaction keeps its locks for ever"
            ),
            format!(
                "`alter role … set {name} = '60s'`, or `.setting(\"set {name} = '60s'\")` in the builder"
            ),
        ),
    })
}

async fn keepalive(lease: &Lease) -> Result<Finding, Failure> {
    let name = "tcp_keepalives_idle";
    let seconds: u64 = setting(lease, name)
        .await?
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let evidence = match seconds {
        0 => format!("`{name}` is that of the server's system, two hours as a rule"),
        seconds => format!("`{name}` is {seconds} s"),
    };
    Ok(match seconds {
        1..=600 => Finding::ok("keepalive", evidence),
        _ => Finding::new(
            Severity::Note,
            "keepalive",
            evidence + ": a client that vanished keeps its place and its locks for that long",
            format!("`alter system set {name} = 60`"),
        ),
    })
}

async fn tls(lease: &Lease, url: &str) -> Result<Finding, Failure> {
    let sql = "select version from pg_stat_ssl where pid = pg_backend_pid() and ssl";
    let row = lease.query_opt(sql, &[]).await?;
    let how: Option<String> = row.and_then(|row| row.try_get(0).ok());
    let fix = "add `?sslmode=require` to the URL, and a certificate to the server";
    Ok(shared::tls(how.as_deref(), shared::is_here(url), fix))
}

async fn clock(lease: &Lease) -> Result<Finding, Failure> {
    let sql = "select extract(epoch from clock_timestamp())::float8";
    let before = SystemTime::now();
    let server = lease.query_one(sql, &[]).await?.try_get(0)?;
    Ok(shared::clock(server, before, SystemTime::now()))
}

async fn latency(lease: &Lease) -> Result<Finding, Failure> {
    let statement = lease.prepare_cached("select 1").await?;
    let mut trips = Vec::new();
    for _ in 0..TRIPS {
        let started = now();
        lease.query_one(&statement, &[]).await?;
        trips.push(started.elapsed());
    }
    Ok(shared::latency(trips))
}

async fn privileges(lease: &Lease) -> Result<Finding, Failure> {
    let sql = "select current_user::text, rolsuper or pg_has_role(current_user, 'pg_signal_backend', 'member') \
               from pg_roles where rolname = current_user";
    let row = lease.query_one(sql, &[]).await?;
    let (user, may): (String, bool) = (row.try_get(0)?, row.try_get(1)?);
    Ok(match may {
        true => Finding::ok(
            "privileges",
            format!("`{user}` may cancel and end sessions of others"),
        ),
        false => Finding::new(
            Severity::Note,
            "privileges",
            format!("`{user}` may cancel and end its own sessions only"),
            format!(
                "enough if all instances log in as `{user}`; else `grant pg_signal_backend to \"{user}\"`"
            ),
        ),
    })
}
