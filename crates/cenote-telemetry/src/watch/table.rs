//! The list of figures.

use cenote::Health;

use crate::watch::figures::Kind::{Counter, Gauge, UpDown};
use crate::watch::figures::Read::{self, By, Count, Time};
use crate::watch::figures::{Attribute, Figure, Kind, Snapshot};

/// Returns all figures.
pub(crate) fn figures() -> impl Iterator<Item = &'static Figure> {
    #[cfg(feature = "fleet")]
    let fleets = crate::watch::fleets::FIGURES;
    #[cfg(not(feature = "fleet"))]
    let fleets = &[];
    FIGURES.iter().chain(fleets)
}

const FIGURES: &[Figure] = &[
    figure(
        [
            "db.client.connection.count",
            "cenote_resources",
            "{connection}",
        ],
        "Resources by state; used ones are lent, or being cleaned or checked.",
        UpDown,
        By(STATE, states),
    ),
    figure(
        [
            "db.client.connection.idle.max",
            "cenote_resources_idle_max",
            "{connection}",
        ],
        "The most resources that may be idle.",
        UpDown,
        Count(|pool| pool.status.max_size as u64),
    ),
    figure(
        [
            "db.client.connection.idle.min",
            "cenote_resources_idle_min",
            "{connection}",
        ],
        "The number of resources that the pool keeps idle.",
        UpDown,
        Count(|pool| pool.min_idle as u64),
    ),
    figure(
        [
            "db.client.connection.max",
            "cenote_resources_max",
            "{connection}",
        ],
        "The most resources that there may be.",
        UpDown,
        Count(|pool| pool.status.max_size as u64),
    ),
    figure(
        [
            "db.client.connection.pending_requests",
            "cenote_waiters",
            "{request}",
        ],
        "Callers that wait for a resource.",
        UpDown,
        Count(|pool| pool.status.waiting as u64),
    ),
    figure(
        [
            "db.client.connection.timeouts",
            "cenote_timeouts_total",
            "{timeout}",
        ],
        "Acquires that timed out.",
        Counter,
        Count(|pool| pool.status.timed_out),
    ),
    figure(
        ["cenote.opening", "cenote_opening", "{resource}"],
        "Resources that are being opened.",
        UpDown,
        Count(|pool| pool.status.opening as u64),
    ),
    figure(
        ["cenote.closing", "cenote_closing", "{resource}"],
        "Resources that are being closed; their places are not free yet.",
        UpDown,
        Count(|pool| pool.status.closing as u64),
    ),
    figure(
        ["cenote.reserved", "cenote_reserved", "{place}"],
        "Places that permits hold without a resource.",
        UpDown,
        Count(|pool| pool.status.reserved as u64),
    ),
    figure(
        ["cenote.oldest_wait", "cenote_oldest_wait_seconds", "s"],
        "How long the oldest caller in line has waited.",
        Gauge,
        Time(|pool| pool.status.oldest_wait.unwrap_or_default()),
    ),
    figure(
        ["cenote.health", "cenote_health", "1"],
        "One for the verdict on the pool, zero for the others.",
        Gauge,
        By(VERDICT, verdicts),
    ),
    figure(
        ["cenote.acquires", "cenote_acquires_total", "{acquire}"],
        "Leases that were handed out.",
        Counter,
        Count(|pool| pool.status.acquired),
    ),
    figure(
        ["cenote.waits", "cenote_waits_total", "{acquire}"],
        "Acquires that could not be served at once.",
        Counter,
        Count(|pool| pool.status.waited),
    ),
    figure(
        [
            "cenote.cancellations",
            "cenote_cancellations_total",
            "{acquire}",
        ],
        "Acquires that were dropped while they waited.",
        Counter,
        Count(|pool| pool.status.cancelled),
    ),
    figure(
        ["cenote.refusals", "cenote_refusals_total", "{acquire}"],
        "Acquires that were refused before their time was over, by reason.",
        Counter,
        By(REASON, |pool| {
            let all = pool.status.refusals.iter();
            all.map(|(reason, count)| (reason.name(), count)).collect()
        }),
    ),
    figure(
        ["cenote.held_time", "cenote_held_seconds_total", "s"],
        "How long the leases that came back were out, in total.",
        Counter,
        Time(|pool| pool.status.held_time),
    ),
    figure(
        ["cenote.leaks", "cenote_leaks_total", "{lease}"],
        "Leases that were out for longer than leak_after.",
        Counter,
        Count(|pool| pool.status.leaked),
    ),
    figure(
        ["cenote.opens", "cenote_opens_total", "{resource}"],
        "Resources that were opened.",
        Counter,
        Count(|pool| pool.status.opened),
    ),
    figure(
        [
            "cenote.open_failures",
            "cenote_open_failures_total",
            "{failure}",
        ],
        "Opens that failed.",
        Counter,
        Count(|pool| pool.status.open_failed),
    ),
    figure(
        ["cenote.closes", "cenote_closes_total", "{resource}"],
        "Resources that were closed, by reason.",
        Counter,
        By(REASON, |pool| {
            let all = pool.status.closes.iter();
            all.map(|(reason, count)| (reason.name(), count)).collect()
        }),
    ),
    figure(
        [
            "cenote.close_failures",
            "cenote_close_failures_total",
            "{failure}",
        ],
        "Closes that failed, hung or panicked.",
        Counter,
        Count(|pool| pool.status.close_failed),
    ),
];

const STATE: Attribute = Attribute {
    name: "db.client.connection.state",
    prometheus: "state",
};
const REASON: Attribute = own("reason");
const VERDICT: Attribute = own("verdict");

const fn own(name: &'static str) -> Attribute {
    Attribute {
        name,
        prometheus: name,
    }
}

pub(crate) const fn figure(
    [name, prometheus, unit]: [&'static str; 3],
    help: &'static str,
    kind: Kind,
    read: Read,
) -> Figure {
    Figure {
        name,
        prometheus,
        unit,
        help,
        kind,
        read,
    }
}

fn states(pool: &Snapshot) -> Vec<(&'static str, u64)> {
    let status = &pool.status;
    let used = status.in_use + status.cleaning + status.checking;
    vec![("idle", status.idle as u64), ("used", used as u64)]
}

fn verdicts(pool: &Snapshot) -> Vec<(&'static str, u64)> {
    let is = |verdict| u64::from(verdict);
    vec![
        ("unproven", is(matches!(pool.health, Health::Unproven))),
        ("healthy", is(matches!(pool.health, Health::Healthy))),
        ("busy", is(matches!(pool.health, Health::Busy))),
        ("stuck", is(matches!(pool.health, Health::Stuck { .. }))),
        ("down", is(matches!(pool.health, Health::Down { .. }))),
        ("closed", is(matches!(pool.health, Health::Closed))),
    ]
}
