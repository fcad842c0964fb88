//! PostgreSQL, alone and behind PgBouncer.

use std::sync::OnceLock;

use cenote_servers::{Found, Server, pgbouncer, postgres};

use crate::doctor::finding;
use crate::{json, refused};

/// The URL of the server that all tests share.
fn url() -> &'static str {
    static FOUND: OnceLock<Found> = OnceLock::new();
    FOUND.get_or_init(|| postgres::find().unwrap()).url()
}

/// A server of our own, whose places and time limits are known.
fn narrow() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let settings = [
            ("max_connections", "20"),
            ("superuser_reserved_connections", "3"),
            ("idle_session_timeout", "60s"),
            ("idle_in_transaction_session_timeout", "30s"),
        ];
        postgres::start_with(&settings).unwrap()
    })
}

#[test]
fn too_many_instances_are_a_problem_with_the_size_that_fits() {
    let (code, report) = json(&["doctor", narrow().url(), "--instances", "4"]);

    assert_eq!(code, Some(1));
    let places = finding(&report, "connections");
    assert_eq!(places["severity"], "problem");
    let evidence = places["evidence"].as_str().unwrap();
    assert!(
        evidence.starts_with("`max_connections` 20 - 3 reserved"),
        "{evidence}"
    );
    assert!(evidence.ends_with("10 x 4 instances = 40"), "{evidence}");
}

#[test]
fn a_server_that_ends_idle_sessions_first_is_a_warning() {
    let (_, report) = json(&["doctor", narrow().url()]);

    let idle = finding(&report, "idle sessions");
    assert_eq!(idle["severity"], "warning", "{idle}");
    assert!(
        idle["evidence"]
            .as_str()
            .unwrap()
            .contains("`idle_session_timeout` is 60s")
    );
    assert_eq!(finding(&report, "idle transactions")["severity"], "ok");
    assert_eq!(finding(&report, "proxy")["severity"], "ok");
    assert_eq!(finding(&report, "clock")["severity"], "ok");
}

#[test]
fn pgbouncer_is_found_with_its_mode() {
    for (mode, severity) in [
        ("transaction", "warning"),
        ("session", "note"),
        ("statement", "problem"),
    ] {
        let bouncer = pgbouncer::start_with(narrow().url(), &[("pool_mode", mode)]).unwrap();

        let (_, report) = json(&["doctor", bouncer.url()]);

        let proxy = finding(&report, "proxy");
        assert_eq!(proxy["severity"], severity, "{mode}: {proxy}");
        assert!(
            proxy["evidence"].as_str().unwrap().contains("PgBouncer 1."),
            "{proxy}"
        );
    }
}

#[test]
fn an_unreachable_server_is_one_line_with_the_fix() {
    refused(
        &["doctor", "postgres://app:secret@127.0.0.1:1/shop"],
        1,
        &[
            "postgres://app:***@127.0.0.1:1/shop",
            "refused",
            "check that the server runs",
        ],
    );
}

#[test]
fn an_unknown_database_is_one_line_with_the_fix() {
    let url = url().rsplit_once('/').unwrap().0.to_owned() + "/no_such_database";

    refused(
        &["doctor", &url],
        1,
        &["no_such_database", "check user, password and database"],
    );
}

#[test]
fn a_bench_runs_through_pgbouncer_with_plain_text() {
    let bouncer = pgbouncer::start(narrow().url()).unwrap();
    let args = [
        "bench",
        bouncer.url(),
        "--seconds",
        "1",
        "--max-size",
        "4",
        "--simple",
    ];

    let (code, report) = json(&args);

    assert_eq!(code, Some(0), "{report}");
    assert!(report["operations"].as_u64().unwrap() > 0);
}

#[test]
fn a_statement_that_the_server_refuses_is_one_line() {
    refused(
        &["bench", url(), "--sql", "select * from no_such_table"],
        1,
        &["no_such_table"],
    );
}

#[test]
fn the_size_that_is_advised_leaves_room_for_all_instances() {
    let args = [
        "tune",
        narrow().url(),
        "--step-ms",
        "100",
        "--max-size",
        "4",
        "--instances",
        "9",
    ];

    let (code, advice) = json(&args);

    assert_eq!(code, Some(0), "{advice}");
    assert_eq!(advice["max_size"], 1, "{advice}");
    assert_eq!(advice["limit"], 1, "{advice}");
}

#[cfg(feature = "full")]
#[test]
fn a_role_that_may_not_read_a_table_is_one_line() {
    let sql = "create role looker login; create table ledger (entry text)";
    super::admin::postgres(narrow().url(), sql);
    let url = narrow().url().replacen("postgres@", "looker@", 1);

    refused(
        &["bench", &url, "--sql", "select * from ledger"],
        1,
        &["permission denied for table ledger"],
    );
}
