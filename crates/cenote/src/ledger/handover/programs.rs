//! The programs: every kind of waiter against every other act, alone and in company.

use std::env;

use super::Act::{
    self, Alarm, Close, FailOpen, Give, GiveLate, Help, Look, Open, Trip, TripAndClose,
    TripAndReset,
};
use super::waiter::{Script, With};
use super::{Program, play};

/// Sleeps until it is woken.
const PATIENT: Script = Script {
    hurries: false,
    polls: &[],
    woken: With::Same,
    leaves: false,
    late: false,
    newcomer: false,
    reserves: false,
};
const FRESH: &[With] = &[With::Fresh];
const POLLED: Script = Script {
    polls: &[With::Same],
    ..PATIENT
};
const MOVED: Script = Script {
    polls: FRESH,
    woken: With::Fresh,
    ..PATIENT
};
const LEAVES: Script = Script {
    leaves: true,
    ..PATIENT
};
const MOVED_AND_LEAVES: Script = Script {
    leaves: true,
    ..MOVED
};
const NEWCOMER: Script = Script {
    newcomer: true,
    ..PATIENT
};

/// Wants a place and no resource.
const RESERVES: Script = Script {
    reserves: true,
    ..PATIENT
};
const RESERVES_MOVED: Script = Script {
    reserves: true,
    ..MOVED
};
const RESERVES_AND_LEAVES: Script = Script {
    reserves: true,
    ..LEAVES
};

/// The same script with a deadline.
const fn hurried(script: Script) -> Script {
    Script {
        hurries: true,
        ..script
    }
}

/// The same script with a deadline, and polls after it.
const fn late(script: Script) -> Script {
    Script {
        late: true,
        ..hurried(script)
    }
}

const PATIENTS: [Script; 5] = [PATIENT, POLLED, MOVED, LEAVES, MOVED_AND_LEAVES];

const HURRIED: [Script; 8] = [
    hurried(PATIENT),
    hurried(POLLED),
    hurried(MOVED),
    hurried(LEAVES),
    hurried(MOVED_AND_LEAVES),
    late(POLLED),
    late(MOVED),
    late(MOVED_AND_LEAVES),
];

fn one<const N: usize>(scripts: [Script; N]) -> Vec<Vec<Script>> {
    scripts.iter().map(|script| vec![*script]).collect()
}

/// Each first waiter with each second one.
fn two<const N: usize, const M: usize>(
    firsts: [Script; N],
    seconds: [Script; M],
) -> Vec<Vec<Script>> {
    let pairs = firsts.iter().flat_map(|first| {
        let seconds = seconds.iter();
        seconds.map(|second| vec![*first, *second])
    });
    pairs.collect()
}

/// One program for each of these groups of waiters with each of these groups of acts.
fn programs(waiters: &[Vec<Script>], acts: &[&[Act]]) -> Vec<Program> {
    let programs = waiters.iter().flat_map(|waiters| {
        acts.iter().map(|acts| Program {
            waiters: waiters.clone(),
            acts: acts.to_vec(),
        })
    });
    programs.collect()
}

#[test]
fn a_waiter_and_another_thread_lose_nothing_in_any_order() {
    const ENDS: [&[Act]; 7] = [
        &[Give],
        &[Open],
        &[FailOpen],
        &[Close],
        &[Trip],
        &[TripAndClose],
        &[TripAndReset],
    ];
    const SPENDS: [&[Act]; 2] = [&[Look], &[Help]];
    const IN_TIME: [&[Act]; 5] = [&[Give], &[GiveLate], &[Close], &[Trip], &[Alarm]];

    let mut pairs = programs(&one(PATIENTS), &ENDS);
    pairs.extend(programs(&one([LEAVES, MOVED_AND_LEAVES]), &SPENDS));
    pairs.extend(programs(&one(HURRIED), &IN_TIME));

    play("a waiter and another thread", pairs);
}

#[test]
fn a_place_is_lost_in_no_order() {
    const ENDS: [&[Act]; 5] = [&[Give], &[Close], &[Trip], &[TripAndClose], &[TripAndReset]];
    const IN_TIME: [&[Act]; 4] = [&[Give], &[GiveLate], &[Close], &[Alarm]];
    const RESERVERS: [Script; 3] = [RESERVES, RESERVES_MOVED, RESERVES_AND_LEAVES];
    const HURRIED_RESERVERS: [Script; 3] = [
        hurried(RESERVES),
        hurried(RESERVES_AND_LEAVES),
        late(RESERVES_MOVED),
    ];

    let mut places = programs(&one(RESERVERS), &ENDS);
    places.extend(programs(&one(HURRIED_RESERVERS), &IN_TIME));
    places.extend(programs(&two(RESERVERS, [PATIENT, RESERVES]), &[&[Give]]));
    places.extend(programs(&two([PATIENT, LEAVES], RESERVERS), &[&[Give]]));

    play("places", places);
}

#[test]
fn a_waiter_and_two_other_threads_lose_nothing_in_any_order() {
    const ENDS: [&[Act]; 15] = [
        &[Give, Close],
        &[Give, Trip],
        &[Give, TripAndClose],
        &[Give, TripAndReset],
        &[Give, Look],
        &[Give, Help],
        &[Open, Close],
        &[Open, Trip],
        &[Open, Help],
        &[FailOpen, Close],
        &[FailOpen, Trip],
        &[Close, Trip],
        &[Close, Look],
        &[Close, Help],
        &[Trip, Look],
    ];
    const FOR_NEWCOMERS: [&[Act]; 4] = [
        &[Give, Close],
        &[Give, Trip],
        &[Give, TripAndReset],
        &[Give, Help],
    ];
    const IN_TIME: [&[Act]; 10] = [
        &[Give, Alarm],
        &[GiveLate, Alarm],
        &[GiveLate, Close],
        &[GiveLate, Trip],
        &[Open, Alarm],
        &[FailOpen, Alarm],
        &[Close, Alarm],
        &[Trip, Alarm],
        &[TripAndReset, Alarm],
        &[Help, Alarm],
    ];

    let mut triples = programs(&one(PATIENTS), &ENDS);
    triples.extend(programs(&one([NEWCOMER]), &FOR_NEWCOMERS));
    triples.extend(programs(&one(HURRIED), &IN_TIME));

    play("a waiter and two other threads", triples);
}

#[test]
fn two_waiters_and_another_thread_lose_nothing_in_any_order() {
    const ENDS: [&[Act]; 4] = [&[Give], &[Open], &[Close], &[Trip]];
    const IN_TIME: [&[Act]; 3] = [&[Give], &[GiveLate], &[Alarm]];
    let patient = two(PATIENTS, [PATIENT, MOVED, LEAVES, NEWCOMER]);
    let hurried = two(HURRIED, [hurried(PATIENT), late(MOVED)]);
    let mixed = two(HURRIED, [PATIENT]);

    let mut triples = programs(&patient, &ENDS);
    triples.extend(programs(&hurried, &IN_TIME));
    triples.extend(programs(&mixed, &[&[Give], &[GiveLate]]));

    play("two waiters and another thread", triples);
}

/// Most of these programs are part of the long form only.
#[test]
fn two_waiters_and_two_other_threads_lose_nothing_in_any_order() {
    const ENDS: [&[Act]; 4] = [
        &[Give, Close],
        &[Give, Trip],
        &[Give, TripAndReset],
        &[Close, Help],
    ];
    const IN_TIME: [&[Act]; 2] = [&[Give, Alarm], &[GiveLate, Alarm]];
    let is_long = env::var_os("CENOTE_MODEL_LONG").is_some();
    let firsts: &[Script] = if is_long {
        &[PATIENT, MOVED, LEAVES]
    } else {
        &[PATIENT]
    };
    let seconds = [PATIENT, NEWCOMER];

    let mut many = Vec::new();
    for first in firsts {
        many.extend(programs(&two([*first], seconds), &ENDS));
        let in_time = two([hurried(*first)], [PATIENT, hurried(PATIENT)]);
        many.extend(programs(&in_time, &IN_TIME));
    }
    if is_long {
        many.extend(programs(&two([PATIENT], seconds), &[&[Give, Look]]));
    }

    play("two waiters and two other threads", many);
}
