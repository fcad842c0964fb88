//! Settings that do not fit are found, with numbers and a fix.

use cenote::Config;

use super::*;

fn plan(max_size: usize, instances: u32) -> Plan {
    let config = Config {
        max_size,
        ..Config::default()
    };
    Plan { config, instances }
}

const PLACES: Places = Places {
    all: 100,
    reserved: 3,
    others: 7,
};

#[test]
fn more_connections_than_the_server_has_are_a_problem() {
    let finding = places(PLACES, &plan(20, 5), "max_connections");

    assert_eq!(finding.severity, Severity::Problem);
    assert!(finding.evidence.contains("= 90 left"), "{finding:?}");
    assert!(
        finding
            .fix
            .unwrap()
            .starts_with("set `max_size` to at most 18 ")
    );
}

#[test]
fn more_connections_than_others_leave_are_a_warning() {
    let finding = places(PLACES, &plan(19, 5), "max_connections");

    assert_eq!(finding.severity, Severity::Warning);
}

#[test]
fn connections_that_fit_are_ok() {
    let finding = places(PLACES, &plan(18, 5), "max_connections");

    assert_eq!(finding.severity, Severity::Ok);
}

#[test]
fn a_server_that_hangs_up_before_the_pool_does_is_a_warning() {
    let minute = Some(Duration::from_secs(60));

    let finding = idle_limit("idle", "wait_timeout", minute, &plan(10, 1));

    assert_eq!(finding.severity, Severity::Warning);
    assert!(
        finding
            .fix
            .unwrap()
            .contains("`idle_timeout` to at most 48s")
    );
}

#[test]
fn a_resource_that_is_kept_for_ever_is_compared_by_its_age() {
    let mut plan = plan(10, 1);
    plan.config.min_idle = 1;
    let hours = |hours: u64| Some(Duration::from_secs(hours * 3600));
    plan.config.max_lifetime = None;

    let found = [hours(8), None].map(|limit| idle_limit("idle", "wait_timeout", limit, &plan));

    assert_eq!(found[0].severity, Severity::Warning);
    assert!(
        found[0]
            .evidence
            .contains("`max_lifetime` of the pool is off")
    );
    assert_eq!(found[1].severity, Severity::Ok);
}

#[test]
fn a_clock_is_judged_beyond_the_round_trip_only() {
    let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);

    let found = [105.0, 112.0, 90.0].map(|server| clock(server, at(100), at(110)).severity);

    assert_eq!(found, [Severity::Ok, Severity::Warning, Severity::Warning]);
}

#[test]
fn this_machine_is_known_by_its_names() {
    let here = [
        "postgres://a@localhost/b",
        "redis://127.0.0.1:6379",
        "mysql://[::1]:3306/x",
    ];

    assert!(here.iter().all(|url| is_here(url)));
    assert!(!is_here("postgres://localhost:x@db.example:5432/b"));
}
