//! Checks that several kinds of servers share: places, idle time limits, latency, clock, TLS.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Plan;
use super::finding::{Finding, Severity};
use crate::out::short_time;
use crate::target::Places;

/// Compares the places of the server with what all instances may open.
pub(super) fn places(found: Places, plan: &Plan, setting: &str) -> Finding {
    let (size, instances) = (plan.config.max_size as u64, plan.instances);
    let wanted = size * u64::from(instances);
    let Places {
        all,
        reserved,
        others,
    } = found;
    let left = found.left();
    let evidence = format!(
        "`{setting}` {all} - {reserved} reserved - {others} in use by others = {left} left; \
         `max_size` {size} x {instances} instances = {wanted}"
    );
    let fix = format!(
        "set `max_size` to at most {} (for {instances} instances), or raise `{setting}`; instances \
         that run already are among the others",
        found.for_each(instances).max(1)
    );
    if wanted > all.saturating_sub(reserved) {
        Finding::new(Severity::Problem, "connections", evidence, fix)
    } else if wanted > left {
        Finding::new(Severity::Warning, "connections", evidence, fix)
    } else {
        Finding::ok("connections", evidence)
    }
}

/// Compares the time after which the server ends an idle session with the time for which the pool
/// keeps one. `None`: the server does not end it.
pub(super) fn idle_limit(
    check: &'static str,
    setting: &str,
    limit: Option<Duration>,
    plan: &Plan,
) -> Finding {
    let config = &plan.config;
    let Some(limit) = limit else {
        return Finding::ok(
            check,
            format!("`{setting}` is off: the server ends no idle session"),
        );
    };
    let heartbeat = config.heartbeat_interval.filter(|beat| *beat < limit);
    if let Some(beat) = heartbeat {
        let beat = short_time(beat);
        let evidence = format!("`{setting}` is {limit:?}, and a heartbeat comes every {beat}");
        return Finding::ok(check, evidence);
    }
    let keeps_some = config.min_size.max(config.min_idle) > 0;
    let (name, kept) = match keeps_some {
        // Kept resources are not closed for being idle, but for their age.
        true => ("max_lifetime", config.max_lifetime),
        false => ("idle_timeout", config.idle_timeout),
    };
    let shown = kept.map_or("off".to_owned(), |kept| format!("{kept:?}"));
    let evidence = format!("`{setting}` is {limit:?}, `{name}` of the pool is {shown}");
    if kept.is_some_and(|kept| kept < limit) {
        return Finding::ok(check, evidence);
    }
    let below = limit.mul_f64(0.8);
    let fix = format!(
        "the server ends sessions that the pool still lends: set `{name}` to at most {below:.0?}, \
         or `heartbeat_interval` below {limit:?}, or raise `{setting}`"
    );
    Finding::new(Severity::Warning, check, evidence, fix)
}

/// Judges the median of some round trips.
pub(super) fn latency(mut trips: Vec<Duration>) -> Finding {
    trips.sort_unstable();
    let median = trips.get(trips.len() / 2).copied().unwrap_or_default();
    let worst = trips.last().copied().unwrap_or_default();
    let evidence = format!(
        "a round trip takes {} ({} at most, of {})",
        short_time(median),
        short_time(worst),
        trips.len()
    );
    if median > Duration::from_millis(20) {
        let fix = "run the service nearer to the server, or send fewer statements per request";
        Finding::new(Severity::Warning, "latency", evidence, fix)
    } else {
        Finding::ok("latency", evidence)
    }
}

/// Compares the clock of the server with the clock of this machine. The server was asked between
/// `before` and `after`.
pub(super) fn clock(server: f64, before: SystemTime, after: SystemTime) -> Finding {
    let seconds = |time: SystemTime| {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        since.as_secs_f64()
    };
    let (before, after) = (seconds(before), seconds(after));
    // Within the round trip any time fits.
    let off = server - server.clamp(before.min(after), after.max(before));
    let evidence = format!("the server's clock is {off:+.3} s off this machine's");
    if off.abs() > 1.0 {
        let fix = "synchronise both clocks (NTP): deadlines and timestamps disagree otherwise";
        Finding::new(Severity::Warning, "clock", evidence, fix)
    } else {
        Finding::ok("clock", evidence)
    }
}

/// Judges whether the connection is encrypted. `how` names the cipher or the version.
pub(super) fn tls(how: Option<&str>, is_here: bool, fix: &str) -> Finding {
    match how {
        Some(how) => Finding::ok("TLS", format!("in use: {how}")),
        None if is_here => Finding::ok("TLS", "not in use, and the server is on this machine"),
        None => {
            let evidence = "not in use: passwords and data can be read on the way";
            Finding::new(Severity::Warning, "TLS", evidence, fix)
        }
    }
}

/// Returns whether the host of a URL is this machine.
pub(super) fn is_here(url: &str) -> bool {
    let start = url.find("://").map_or(0, |at| at + "://".len());
    let end = url[start..]
        .find(['/', '?'])
        .map_or(url.len(), |at| start + at);
    let place = url[start..end].rsplit('@').next().unwrap_or_default();
    let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
    host.is_empty() || ["localhost", "127.0.0.1", "[::1]"].contains(&host)
}

#[cfg(test)]
mod tests;
