//! Single rounds of a member.

mod quick;

use super::*;

const TTL: u32 = 10_000;
const EPOCH: Epoch = Epoch {
    origin: 1,
    nonce: 2,
};

fn name() -> Name {
    Name::new("api").unwrap()
}

fn terms() -> Terms {
    Terms {
        capacity: 10,
        floor: 1,
        weight: 1,
        overhead: 0,
        ttl: TTL,
        control: false,
        members_max: 0,
        name: name(),
    }
}

/// Member 1, whose pool has `open` connections of `max_size`, and wants `wants`.
fn mine(open: u32, max_size: u32, wants: u32) -> Mine {
    Mine {
        id: MemberId(1),
        terms: terms(),
        load: Load { open, wants },
        max_size,
        beat: 100,
        written: 0,
        asked: Duration::ZERO,
        held: false,
        leaving: false,
        fresh: Epoch { nonce: 99, ..EPOCH },
    }
}

fn record(has: u32, wants: u32) -> Record {
    Record {
        beat: 7,
        ttl: TTL,
        capacity: 10,
        floor: 1,
        weight: 1,
        has,
        wants,
        fenced: false,
        name: name(),
    }
}

fn cell(members: &[(u64, Record)]) -> Cell {
    let mut cell = Cell::new(EPOCH);
    cell.members = members
        .iter()
        .map(|(id, record)| (MemberId(*id), *record))
        .collect();
    cell
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn counted(counts: &[(u64, u32)]) -> Seen {
    let mut seen = Seen::default();
    seen.counted(Some(
        counts
            .iter()
            .map(|(id, count)| (MemberId(*id), *count))
            .collect(),
    ));
    seen
}

fn mine_in(step: &Step) -> Record {
    step.cell.members[&MemberId(1)]
}

#[test]
fn a_newcomer_grows_into_what_the_others_leave() {
    let cell = cell(&[(2, record(7, 7))]);

    let step = step(
        seconds(0),
        &mine(0, 0, 9),
        Some(&cell),
        &mut Seen::default(),
    );

    assert_eq!(
        (step.max_size, mine_in(&step).has),
        (3, 3),
        "its fair share is 5"
    );
    assert!(step.orders.swap && step.orders.nudge, "{:?}", step.orders);
}

#[test]
fn has_falls_only_after_connections_are_closed() {
    let before = cell(&[(1, record(9, 2)), (2, record(1, 9))]);
    let mut seen = Seen::default();

    let shrinks = step(seconds(0), &mine(9, 9, 2), Some(&before), &mut seen);
    assert_eq!(
        (shrinks.max_size, mine_in(&shrinks).has),
        (2, 9),
        "all are open"
    );

    let closes = step(seconds(1), &mine(6, 2, 2), Some(&shrinks.cell), &mut seen);
    assert_eq!(
        (closes.max_size, mine_in(&closes).has),
        (2, 6),
        "six are open"
    );
    assert!(closes.orders.nudge && closes.orders.soon);

    let closed = step(seconds(2), &mine(2, 2, 2), Some(&closes.cell), &mut seen);
    assert_eq!((closed.max_size, mine_in(&closed).has), (2, 2));
}

#[test]
fn a_cap_that_was_in_force_counts_like_open_connections() {
    let before = cell(&[(1, record(9, 2)), (2, record(1, 9))]);

    let step = step(
        seconds(0),
        &mine(0, 9, 2),
        Some(&before),
        &mut Seen::default(),
    );

    assert_eq!(
        mine_in(&step).has,
        9,
        "the pool may open nine until it is told"
    );
}

#[test]
fn a_session_that_the_server_still_counts_is_held() {
    let before = cell(&[(1, record(5, 2)), (2, record(5, 9))]);

    let step = step(
        seconds(0),
        &mine(2, 2, 2),
        Some(&before),
        &mut counted(&[(1, 4)]),
    );

    assert_eq!(mine_in(&step).has, 4);
}

#[test]
fn strays_and_fenced_members_take_room() {
    let fenced = Record {
        fenced: true,
        ..record(3, 9)
    };
    let cell = cell(&[(2, fenced)]);

    let step = step(
        seconds(0),
        &mine(0, 0, 9),
        Some(&cell),
        &mut counted(&[(2, 3), (8, 2)]),
    );

    assert_eq!(
        step.max_size, 5,
        "ten without three that are fenced and two strays"
    );
    assert_eq!(step.orders.fence, [MemberId(2)]);
}

#[test]
fn a_new_cell_is_learned_after_it_was_watched_for_a_ttl() {
    let mut seen = Seen::default();

    let first = step(seconds(0), &mine(2, 4, 9), None, &mut seen);
    assert_eq!(
        (first.max_size, mine_in(&first).has, first.cell.learned),
        (4, 4, false)
    );

    let early = step(seconds(9), &mine(4, 4, 9), Some(&first.cell), &mut seen);
    assert_eq!(
        (early.max_size, early.cell.learned),
        (4, false),
        "no member grows"
    );

    let late = step(seconds(10), &mine(4, 4, 9), Some(&early.cell), &mut seen);
    assert_eq!((late.max_size, late.cell.learned), (9, true));
}

#[test]
fn a_cell_of_another_history_of_the_engine_is_not_believed() {
    let old = Cell {
        epoch: Epoch {
            origin: 5,
            nonce: 5,
        },
        ..cell(&[(2, record(1, 1))])
    };

    let step = step(seconds(0), &mine(2, 2, 9), Some(&old), &mut Seen::default());

    assert!(!step.cell.learned);
    assert_eq!(step.cell.members.len(), 1);
    assert_eq!(step.cell.epoch, mine(0, 0, 0).fresh);
}

#[test]
fn a_silent_member_is_marked_then_fenced_then_buried() {
    let cell = cell(&[(1, record(1, 9)), (2, record(9, 9))]);
    let mut seen = counted(&[(2, 9)]);
    let mut round = |at, cell: &Cell, left: u32| {
        seen.counted(Some([(MemberId(2), left)].into()));
        step(seconds(at), &mine(1, 1, 9), Some(cell), &mut seen)
    };

    let waits = round(0, &cell, 9);
    assert!(!waits.cell.members[&MemberId(2)].fenced);
    let waits = round(9, &waits.cell, 9);
    assert!(!waits.cell.members[&MemberId(2)].fenced);

    let marks = round(10, &waits.cell, 0);
    assert!(
        marks.cell.members[&MemberId(2)].fenced,
        "the count is older than the mark"
    );
    assert_eq!((marks.max_size, marks.orders.fence.len()), (1, 0));

    let fences = round(10, &marks.cell, 9);
    assert_eq!(
        (fences.max_size, &fences.orders.fence[..]),
        (1, &[MemberId(2)][..])
    );

    let buries = round(11, &fences.cell, 0);
    assert_eq!(buries.cell.members.len(), 1);
    assert_eq!(buries.max_size, 9);
}

#[test]
fn where_nothing_can_be_counted_time_alone_buries() {
    let cell = cell(&[(1, record(1, 9)), (2, record(9, 9))]);
    let mut seen = Seen::default();
    step(seconds(0), &mine(1, 1, 9), Some(&cell), &mut seen);

    let step = step(seconds(10), &mine(1, 1, 9), Some(&cell), &mut seen);

    assert_eq!((step.cell.members.len(), step.max_size), (1, 9));
}

#[test]
fn a_member_that_beats_is_not_silent() {
    let mut seen = Seen::default();
    for at in 0..30 {
        let mut living = record(9, 9);
        living.beat = at;
        let cell = cell(&[(1, record(1, 9)), (2, living)]);

        let step = step(seconds(at), &mine(1, 1, 9), Some(&cell), &mut seen);

        assert!(!step.cell.members[&MemberId(2)].fenced);
    }
}

#[test]
fn a_member_that_wakes_up_before_its_burial_keeps_its_share() {
    let fenced = Record {
        fenced: true,
        ..record(4, 4)
    };
    let cell = cell(&[(1, fenced), (2, record(6, 9))]);

    let step = step(seconds(0), &mine(4, 4, 4), Some(&cell), &mut counted(&[]));

    assert_eq!((mine_in(&step).fenced, step.max_size), (false, 4));
    assert!(step.orders.invalidate, "its sessions may have been ended");
}

#[test]
fn a_member_that_wakes_up_after_its_burial_trusts_nothing() {
    let cell = cell(&[(2, record(8, 9))]);

    let step = step(seconds(0), &mine(3, 4, 4), Some(&cell), &mut counted(&[]));

    assert_eq!(
        mine_in(&step).has,
        3,
        "three are open, and the fourth is void"
    );
    assert!(step.orders.invalidate);
    assert!(step.max_size <= 3);
}

#[test]
fn a_member_leaves_when_its_pool_is_empty() {
    let cell = cell(&[(1, record(4, 4)), (2, record(1, 1))]);
    let leaving = |open, max_size| Mine {
        leaving: true,
        ..mine(open, max_size, 4)
    };
    let mut seen = Seen::default();

    let first = step(seconds(0), &leaving(4, 4), Some(&cell), &mut seen);
    assert_eq!((first.max_size, first.orders.left), (0, false));
    let second = step(seconds(0), &leaving(1, 0), Some(&first.cell), &mut seen);
    assert_eq!((mine_in(&second).has, second.orders.left), (1, false));
    let last = step(seconds(0), &leaving(0, 0), Some(&second.cell), &mut seen);

    assert!(last.orders.left && last.orders.nudge);
    assert_eq!(last.cell.members.keys().collect::<Vec<_>>(), [&MemberId(2)]);
}

#[test]
fn the_overhead_counts_whether_it_is_open_or_not() {
    let mut mine = mine(0, 0, 20);
    mine.terms.overhead = 2;

    let step = step(
        seconds(0),
        &mine,
        Some(&cell(&[(2, record(1, 1))])),
        &mut Seen::default(),
    );

    assert_eq!((step.max_size, mine_in(&step).has), (7, 9));
}

#[test]
fn a_round_in_which_nothing_changes_asks_for_no_swap() {
    let cell = cell(&[(1, record(4, 4)), (2, record(6, 6))]);

    let step = step(
        seconds(0),
        &mine(4, 4, 4),
        Some(&cell),
        &mut Seen::default(),
    );

    assert_eq!(step.orders, Orders::default());
    assert_eq!(step.max_size, 4);
}

#[test]
fn a_cell_that_is_older_than_the_own_last_write_counts_as_lost() {
    let old = cell(&[(1, record(1, 1)), (2, record(1, 1))]);
    let after = |written| {
        let mine = Mine {
            written,
            ..mine(5, 5, 5)
        };
        step(seconds(1), &mine, Some(&old), &mut Seen::default()).cell
    };

    assert_eq!(after(7).epoch, EPOCH, "it is the last one");
    let lost = after(8);
    assert!(!lost.learned && lost.epoch.nonce == 99);
    assert_eq!((lost.members.len(), lost.members[&MemberId(1)].has), (1, 5));
}
