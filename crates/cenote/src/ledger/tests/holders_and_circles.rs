//! Holders and circles: how a timeout describes the leases that are out.

use std::thread;

use super::*;
use crate::rt::Owner;
use crate::status::HolderGroup;

#[track_caller]
fn here() -> &'static Location<'static> {
    Location::caller()
}

/// A pool whose resources are all lent: at these sites, with these labels.
fn lent_at(leases: &[(&'static Location<'static>, Option<&'static str>)]) -> Rig {
    let mut rig = Rig::new(of_size(leases.len()));
    for (site, label) in leases {
        let asker = Asker { site, owner: None };
        let waiter = rig.wait_as(asker, Moment::NEVER);
        rig.open();
        let slot = waiter.claim().slot;
        let label: Option<Label> = label.map(|label| Box::new(label.into()));
        assert!(rig.ledger.set_label(slot, label).is_none());
        rig.now += SECOND;
    }
    rig
}

/// The groups of holders in the report of a waiter that times out now.
fn groups(rig: &mut Rig) -> Vec<HolderGroup> {
    let waiter = rig.wait(Some(Duration::ZERO));
    rig.look(&waiter);
    waiter.timeout().seen.holders.clone()
}

#[test]
fn leases_of_one_source_line_are_one_group_whatever_the_column() {
    let (one, other) = (here(), here());
    assert_ne!(one.column(), other.column());
    let elsewhere = here();
    let mut rig = lent_at(&[(one, None), (elsewhere, None), (other, None), (one, None)]);

    let groups = groups(&mut rig);

    let seen: Vec<_> = groups
        .iter()
        .map(|group| (group.site.line(), group.count, group.longest))
        .collect();
    let expected = [
        (one.line(), 3, 4 * SECOND),
        (elsewhere.line(), 1, 3 * SECOND),
    ];
    assert_eq!(seen, expected, "the longest first");
}

#[test]
fn leases_of_one_source_line_are_grouped_by_label() {
    let site = here();
    let labels = [Some("report"), None, Some("import"), Some("report")];
    let mut rig = lent_at(&labels.map(|label| (site, label)));

    let groups = groups(&mut rig);

    let seen: Vec<_> = groups
        .iter()
        .map(|group| (group.label.as_deref(), group.count))
        .collect();
    assert_eq!(seen, [(Some("report"), 2), (None, 1), (Some("import"), 1)]);
}

#[test]
fn unclaimed_grants_are_a_group_of_their_own() {
    let site = here();
    let mut rig = lent_at(&[(site, None), (site, None)]);
    let _sleeper = rig.wait_as(Asker { site, owner: None }, Moment::NEVER);
    rig.give_back(0);

    let groups = groups(&mut rig);

    let claimed: Vec<_> = groups.iter().map(|group| group.claimed).collect();
    assert_eq!(claimed, [true, false]);
    assert!(
        groups[1].to_string().ends_with("not taken yet"),
        "{groups:?}"
    );
}

#[test]
fn a_label_is_removed_when_its_lease_ends() {
    let site = here();
    let mut rig = lent_at(&[(site, Some("report"))]);
    rig.give_back(0);
    rig.lend();

    assert_eq!(groups(&mut rig)[0].label, None);
}

/// A pool whose first lease was taken by this thread, which waits for another one.
fn circle(config: Config) -> (Rig, Waiter) {
    let owner = Some(Owner::Thread(thread::current().id()));
    let asker = Asker {
        site: here(),
        owner,
    };
    let mut rig = Rig::new(config);
    let holder = rig.wait_as(asker, Moment::NEVER);
    rig.open();
    holder.claim();
    let deadline = rig.now + 3 * HELD_UP_AFTER;
    let waiter = rig.wait_as(asker, deadline);
    (rig, waiter)
}

/// The waiter is polled. Returns whether it reports a circle.
fn finds_circle(rig: &mut Rig, waiter: &Waiter) -> bool {
    rig.look(waiter);
    rig.orders.take_circle().is_some()
}

#[test]
fn a_circle_is_reported_once_by_a_waiter_that_looks() {
    let (mut rig, waiter) = circle(of_size(1));
    assert!(!finds_circle(&mut rig, &waiter), "it is early");
    rig.now += HELD_UP_AFTER;

    rig.look(&waiter);

    let circle = rig.orders.take_circle().expect("a circle");
    assert_eq!(circle.holders.len(), 1);
    assert!(!finds_circle(&mut rig, &waiter), "it was reported before");
    rig.now += 2 * HELD_UP_AFTER;
    rig.look(&waiter);
    let seen = waiter.timeout().seen;
    assert!(
        seen.circle_told
            .as_ref()
            .is_some_and(|told| told.load(Ordering::Relaxed))
    );
    assert!(seen.circle.is_empty());
}

#[test]
fn a_circle_that_was_not_reported_yet_is_reported_by_the_timeout() {
    let (mut rig, waiter) = circle(of_size(1));
    rig.now += 3 * HELD_UP_AFTER;

    rig.look(&waiter);

    let seen = waiter.timeout().seen;
    assert!(
        seen.circle_told
            .as_ref()
            .is_some_and(|told| !told.load(Ordering::Relaxed))
    );
    assert_eq!(seen.circle.len(), 1);
}

#[test]
fn a_circle_is_found_in_a_pool_that_shrank_below_its_leases() {
    let (mut rig, second) = circle(of_size(2));
    rig.open();
    second.claim();
    rig.call(|ledger, now, orders| ledger.resize(1, now, orders));
    let holder = rig.ledger.slots[0].asker.expect("it is leased");
    let waiter = rig.wait_as(holder, Moment::NEVER);
    rig.now += HELD_UP_AFTER;

    assert!(finds_circle(&mut rig, &waiter));
}

#[test]
fn a_lease_of_another_task_or_room_for_more_makes_no_circle() {
    let (mut rig, waiter) = circle(of_size(2));
    rig.now += HELD_UP_AFTER;
    assert!(!finds_circle(&mut rig, &waiter), "there is room");

    let (mut other, _) = Rig::exhausted();
    let stranger = other.wait(None);
    other.now += HELD_UP_AFTER;

    assert!(
        !finds_circle(&mut other, &stranger),
        "its holder is unknown"
    );
}

#[test]
fn a_pool_that_allows_nesting_looks_for_no_circle() {
    let (mut rig, waiter) = circle(Config {
        nested: Nested::Allow,
        ..of_size(1)
    });
    rig.now += HELD_UP_AFTER;

    assert!(!finds_circle(&mut rig, &waiter));
}

#[test]
fn a_pool_that_denies_nesting_refuses_the_second_request_of_a_task() {
    let mut rig = Rig::new(Config {
        nested: Nested::Deny,
        ..of_size(2)
    });
    let owner = Some(Owner::Thread(thread::current().id()));
    let held = here();
    let holder = rig.wait_as(Asker { site: held, owner }, Moment::NEVER);
    rig.open();
    holder.claim();

    let asker = Asker {
        site: here(),
        owner,
    };
    let answer = rig.try_as(asker);

    let Answer::Refused(error) = answer else {
        panic!("it was to be refused: {answer:?}");
    };
    assert!(matches!(*error, AcquireError::Nested { held: told, .. } if told == held));
}
