//! The checks of Redis.

use std::time::{Duration, SystemTime};

use cenote_redis::Lease;
use cenote_redis::redis::{FromRedisValue, RedisError, cmd};

use super::finding::{Finding, Severity};
use super::{Plan, shared};
use crate::clock::now;
use crate::failure::{Failure, whole_story};
use crate::target::redis::{open, places};

/// So many round trips are measured.
const TRIPS: usize = 20;

pub(super) async fn look(url: &str, plan: &Plan) -> Result<Vec<Finding>, Failure> {
    let pool = open(url, Plan::own_config()).await?;
    let mut lease = pool.acquire().await?;
    let ours = pool.status().total as u64;
    let mut found = Vec::new();
    match places(&mut lease, ours).await {
        Ok(places) => found.push(shared::places(places, plan, "maxclients")),
        Err(error) => found.push(not_allowed("connections", "INFO", &whole_story(&*error))),
    }
    found.push(timeout(&mut lease, plan).await);
    found.push(keepalive(&mut lease).await);
    found.push(user(&mut lease, url).await);
    let tls = url.starts_with("rediss:").then_some("rediss");
    let fix = "use `rediss://`, and a certificate on the server";
    found.push(shared::tls(tls, shared::is_here(url), fix));
    found.push(clock(&mut lease).await);
    found.push(latency(&mut lease).await?);
    drop(lease);
    pool.close_within(Duration::from_secs(5)).await;
    Ok(found)
}

/// The user lacks the permission for one check. The others go on.
fn not_allowed(check: &'static str, command: &str, told: &str) -> Finding {
    Finding::new(
        Severity::Note,
        check,
        format!("not checked: {told}"),
        format!(
            "let the user run `{command}` (`ACL SETUSER … +{})`",
            command.to_lowercase()
        ),
    )
}

async fn setting(lease: &mut Lease, name: &str) -> Result<Option<u64>, RedisError> {
    let values: Vec<String> = ask(lease, "CONFIG", &["GET", name]).await?;
    Ok(values.get(1).and_then(|value| value.parse().ok()))
}

async fn ask<T: FromRedisValue>(
    lease: &mut Lease,
    command: &str,
    args: &[&str],
) -> Result<T, RedisError> {
    cmd(command).arg(args).query_async(lease).await
}

async fn timeout(lease: &mut Lease, plan: &Plan) -> Finding {
    match setting(lease, "timeout").await {
        Ok(seconds) => {
            let limit = seconds.filter(|it| *it > 0).map(Duration::from_secs);
            shared::idle_limit("idle sessions", "timeout", limit, plan)
        }
        Err(error) => not_allowed("idle sessions", "CONFIG|GET", &whole_story(&error)),
    }
}

async fn keepalive(lease: &mut Lease) -> Finding {
    match setting(lease, "tcp-keepalive").await {
        Ok(Some(seconds @ 1..)) => {
            Finding::ok("keepalive", format!("`tcp-keepalive` is {seconds} s"))
        }
        Ok(_) => Finding::new(
            Severity::Note,
            "keepalive",
            "`tcp-keepalive` is off: a client that vanished keeps its place",
            "`CONFIG SET tcp-keepalive 300`",
        ),
        Err(error) => not_allowed("keepalive", "CONFIG|GET", &whole_story(&error)),
    }
}

async fn user(lease: &mut Lease, url: &str) -> Finding {
    let name: Result<String, RedisError> = ask(lease, "ACL", &["WHOAMI"]).await;
    match name {
        Ok(name) if name == "default" && !url.contains('@') && !shared::is_here(url) => {
            Finding::new(
                Severity::Warning,
                "user",
                "logged in as `default` without a password",
                "make a user with `ACL SETUSER`, and give the default user a password",
            )
        }
        Ok(name) => Finding::ok("user", format!("logged in as `{name}`")),
        Err(error) => not_allowed("user", "ACL|WHOAMI", &whole_story(&error)),
    }
}

async fn clock(lease: &mut Lease) -> Finding {
    let before = SystemTime::now();
    let time: Result<(f64, f64), RedisError> = ask(lease, "TIME", &[]).await;
    match time {
        Ok((seconds, micros)) => shared::clock(seconds + micros / 1e6, before, SystemTime::now()),
        Err(error) => not_allowed("clock", "TIME", &whole_story(&error)),
    }
}

async fn latency(lease: &mut Lease) -> Result<Finding, Failure> {
    let mut trips = Vec::new();
    for _ in 0..TRIPS {
        let started = now();
        ask::<String>(lease, "PING", &[]).await?;
        trips.push(started.elapsed());
    }
    Ok(shared::latency(trips))
}
