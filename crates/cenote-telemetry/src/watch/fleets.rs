//! The figures of fleets.

use cenote_fleet::FleetWatch;

use crate::watch::figures::Kind::{Counter, Gauge, UpDown};
use crate::watch::figures::{Figure, Fleet, Read};
use crate::watch::table::figure;

impl Fleet {
    pub(crate) fn of(watch: &FleetWatch) -> Self {
        let status = watch.status();
        Self {
            capacity: status.capacity,
            granted: status.granted,
            share: status.share,
            wants: status.mine().map_or(0, |mine| mine.wants),
            members: status.members.len(),
            is_reached: status.is_reached(),
            failures: status.failures,
            lapses: status.lapses,
        }
    }
}

pub(crate) const FIGURES: &[Figure] = &[
    figure(
        [
            "cenote.fleet.capacity",
            "cenote_fleet_capacity",
            "{connection}",
        ],
        "The sessions that all members of the fleet may have, together.",
        Gauge,
        Read::Fleet(|fleet| fleet.capacity.into()),
    ),
    figure(
        [
            "cenote.fleet.granted",
            "cenote_fleet_granted",
            "{connection}",
        ],
        "The sessions that all members of the fleet have been granted, together.",
        Gauge,
        Read::Fleet(|fleet| fleet.granted.into()),
    ),
    figure(
        ["cenote.fleet.share", "cenote_fleet_share", "{connection}"],
        "The connections that this pool may have by its fleet.",
        UpDown,
        Read::Fleet(|fleet| fleet.share.into()),
    ),
    figure(
        ["cenote.fleet.wanted", "cenote_fleet_wanted", "{connection}"],
        "The sessions that this member of the fleet has use for.",
        UpDown,
        Read::Fleet(|fleet| fleet.wants.into()),
    ),
    figure(
        ["cenote.fleet.members", "cenote_fleet_members", "{member}"],
        "The members of the fleet.",
        Gauge,
        Read::Fleet(|fleet| fleet.members as u64),
    ),
    figure(
        ["cenote.fleet.reached", "cenote_fleet_reached", "1"],
        "One if the last round of this member reached its engine, else zero.",
        Gauge,
        Read::Fleet(|fleet| fleet.is_reached.into()),
    ),
    figure(
        [
            "cenote.fleet.failures",
            "cenote_fleet_failures_total",
            "{round}",
        ],
        "Rounds of this member that failed.",
        Counter,
        Read::Fleet(|fleet| fleet.failures),
    ),
    figure(
        [
            "cenote.fleet.lapses",
            "cenote_fleet_lapses_total",
            "{lease}",
        ],
        "How often the lease of this member was over before it could renew it.",
        Counter,
        Read::Fleet(|fleet| fleet.lapses),
    ),
];
