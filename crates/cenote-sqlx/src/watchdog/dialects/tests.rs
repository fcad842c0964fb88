//! What a server says about a session, by its list of sessions.

use super::*;

fn place() -> Place {
    Place {
        id: 7,
        opened: 1000.0,
        server: String::from("here"),
    }
}

fn found(server: &str, started: f64, sessions: &[(i64, f64, bool)]) -> Found {
    let view = View {
        server: server.to_owned(),
        started,
        sessions: sessions.to_vec(),
    };
    view.find(&place())
}

#[test]
fn a_session_is_gone_if_its_server_does_not_list_it() {
    assert_eq!(
        found("here", 1.0, &[(7, 999.9, false), (8, 999.9, true)]),
        Found::Fine
    );
    assert_eq!(found("here", 1.0, &[(7, 999.9, true)]), Found::Idle);
    assert_eq!(found("here", 1.0, &[(8, 999.9, false)]), Found::Gone);
    assert_eq!(found("here", 1.0, &[]), Found::Gone);
}

#[test]
fn a_later_session_with_the_same_id_is_another_one() {
    assert_eq!(
        found("here", 1.0, &[(7, 1000.5, false)]),
        Found::Fine,
        "the clock was set"
    );
    assert_eq!(found("here", 1.0, &[(7, 1003.0, false)]), Found::Gone);
}

#[test]
fn a_server_that_was_started_later_has_no_session_of_before() {
    assert_eq!(found("here", 1003.0, &[(7, 0.0, false)]), Found::Gone);
}

#[test]
fn another_server_cannot_be_asked() {
    assert_eq!(found("there", 1.0, &[]), Found::Fine);
    assert_eq!(found("there", 1003.0, &[(7, 0.0, true)]), Found::Fine);
}
