//! Quick burial, strays, and places that are kept.

use super::*;

fn controlled(open: u32, max_size: u32, wants: u32, asked: u64) -> Mine {
    let mut mine = mine(open, max_size, wants);
    mine.terms.control = true;
    mine.asked = Duration::from_millis(asked);
    mine
}

/// A round of member 1, in which the server counts these sessions.
fn round(seen: &mut Seen, cell: &Cell, at: u64, counts: &[(u64, u32)]) -> Step {
    let counts = counts.iter().map(|(id, count)| (MemberId(*id), *count));
    seen.counted(Some(counts.collect()));
    let now = Duration::from_millis(at + 10);
    step(now, &controlled(1, 1, 9, at), Some(cell), seen)
}

#[test]
fn a_member_without_sessions_at_two_counts_is_buried_at_once() {
    let cell = cell(&[(1, record(1, 9)), (2, record(8, 9))]);
    let mut seen = Seen::default();
    assert_eq!(round(&mut seen, &cell, 0, &[(1, 1), (2, 8)]).max_size, 1);

    let first = round(&mut seen, &cell, 1000, &[(1, 1)]);
    assert_eq!(first.cell.members.len(), 2, "it may live");
    assert!(first.orders.soon);
    let early = round(&mut seen, &cell, 1300, &[(1, 1)]);
    assert_eq!(early.cell.members.len(), 2, "the first count ended at 1010");

    let second = round(&mut seen, &cell, 1310, &[(1, 1)]);
    assert_eq!((second.cell.members.len(), second.max_size), (1, 9));
    assert!(second.orders.swap && second.orders.nudge);
}

#[test]
fn a_member_that_beats_or_has_a_session_is_not_buried_quickly() {
    let mut cell = cell(&[(1, record(1, 9)), (2, record(8, 9))]);
    let mut seen = Seen::default();
    round(&mut seen, &cell, 0, &[(2, 1)]);
    round(&mut seen, &cell, 100, &[]);
    round(&mut seen, &cell, 300, &[(2, 1)]);

    let came_back = round(&mut seen, &cell, 500, &[]);
    assert_eq!(came_back.cell.members.len(), 2);

    cell.members.get_mut(&MemberId(2)).unwrap().beat += 1;
    let beats = round(&mut seen, &cell, 900, &[]);
    assert_eq!(beats.cell.members.len(), 2);
    let is_gone = round(&mut seen, &cell, 1300, &[]);
    assert_eq!(is_gone.cell.members.len(), 1);
}

#[test]
fn a_member_whose_sessions_were_never_seen_has_its_whole_ttl() {
    let cell = cell(&[(1, record(1, 9)), (2, record(8, 9))]);
    let mut seen = Seen::default();
    for at in 0..9 {
        let step = round(&mut seen, &cell, 1000 * at, &[(1, 1)]);

        assert_eq!(step.cell.members.len(), 2, "it may have another role");
    }
}

#[test]
fn a_member_that_is_held_claims_nothing_in_a_cell_that_was_lost() {
    let claims = |held| {
        let mine = Mine {
            held,
            ..controlled(0, 4, 4, 0)
        };
        let step = step(seconds(0), &mine, None, &mut counted(&[(1, 1)]));
        (mine_in(&step).has, step.max_size)
    };

    assert_eq!(claims(false), (4, 4));
    assert_eq!(claims(true), (1, 0), "it may have been buried before");
}

#[test]
fn one_place_is_kept_for_a_process_that_joins() {
    let cell = cell(&[(1, record(1, 20))]);
    let grow = |counts: &[(u64, u32)]| {
        let mine = controlled(1, 1, 20, 0);
        step(seconds(0), &mine, Some(&cell), &mut counted(counts)).max_size
    };

    assert_eq!(grow(&[(1, 1)]), 9);
    assert_eq!(grow(&[(1, 1), (7, 1)]), 9, "it joins now");
    assert_eq!(grow(&[(1, 1), (7, 1), (8, 1)]), 8, "two join");
}

#[test]
fn strays_are_ended_after_a_ttl() {
    let cell = cell(&[(1, record(1, 9))]);
    let mut seen = Seen::default();

    let young = round(&mut seen, &cell, 0, &[(1, 1), (7, 2)]);
    assert_eq!(young.orders.fence, [], "it may be about to join");
    let old = round(&mut seen, &cell, u64::from(TTL), &[(1, 1), (7, 2)]);

    assert_eq!(old.orders.fence, [MemberId(7)]);
}

#[test]
fn connections_beyond_the_capacity_are_told_and_not_replaced() {
    let cell = cell(&[(2, record(9, 9))]);

    let step = step(
        seconds(0),
        &controlled(4, 4, 4, 0),
        Some(&cell),
        &mut counted(&[(1, 1), (2, 9)]),
    );

    assert_eq!((mine_in(&step).has, step.max_size), (4, 0));
}

#[test]
fn the_floors_of_absent_members_are_kept_and_a_member_goes_on_with_its_own() {
    let mut mine = mine(1, 1, 20);
    mine.terms.members_max = 4;
    mine.terms.floor = 2;
    let here = Record {
        floor: 2,
        ..record(1, 20)
    };

    let grown = step(
        seconds(0),
        &mine,
        Some(&cell(&[(1, here)])),
        &mut Seen::default(),
    );
    assert_eq!(grown.max_size, 4, "ten without three floors");

    (mine.load.open, mine.max_size) = (2, 2);
    let other = cell(&[(2, Record { has: 4, ..here })]);
    let back = step(seconds(0), &mine, Some(&other), &mut Seen::default());
    assert_eq!((mine_in(&back).has, back.max_size), (2, 2), "it was buried");
}
