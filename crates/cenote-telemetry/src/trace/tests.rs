//! Traces survive their way through bytes, and broken ones are refused.

use std::panic::Location;

use super::pairing::{Pairing, Told};
use super::recorded::Records;
use super::*;

const MS: Duration = Duration::from_millis(1);

/// Makes up a trace. The seed is in every message.
fn made_up(seed: u64) -> Recorded {
    let mut random = fastrand::Rng::with_seed(seed);
    let time = |random: &mut fastrand::Rng| {
        let bits = random.u32(0..40);
        Duration::from_micros(random.u64(0..=1 << bits))
    };
    let mut trace = Recorded {
        total: random.usize(0..9),
        unix_ms: random.u64(..),
        sites: (0..random.usize(1..5))
            .map(|nth| format!("ü{nth}.rs:7"))
            .collect(),
        ..Recorded::default()
    };
    trace.sites[0] = "unknown".to_owned();
    trace.config.name = Some(format!("pool {seed}"));
    trace.config.max_size = random.usize(1..1000);
    trace.config.acquire_timeout = random.bool().then(|| time(&mut random));
    trace.config.max_waiters = random.bool().then(|| random.usize(..));
    trace.opens = (0..random.usize(0..5)).map(|_| time(&mut random)).collect();
    trace.resizes = (0..random.usize(0..3)).map(|_| random.usize(..)).collect();
    for _ in 0..random.usize(0..200) {
        let held = time(&mut random);
        trace.visits.push(Visit {
            arrival: time(&mut random),
            waited: time(&mut random),
            outcome: *random
                .choice(&[Outcome::Returned { held }, Outcome::Kept, Outcome::TimedOut])
                .unwrap(),
            site: random.usize(0..trace.sites.len()),
            lane: random.u8(0..32),
        });
    }
    trace.end = random.bool().then(|| End {
        stop: Stop::ALL[random.usize(0..4)],
        lasted: time(&mut random),
        lost: random.u64(..),
        cancelled: random.u64(..),
        refused: random.u64(..),
    });
    trace
}

fn bytes(trace: &Recorded) -> Vec<u8> {
    let mut bytes = Vec::new();
    trace.write(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_trace_is_read_as_it_was_written() {
    for seed in 0..500 {
        let trace = made_up(seed);

        assert_eq!(Recorded::read(&*bytes(&trace)).unwrap(), trace, "{seed}");
    }
}

#[test]
fn a_trace_that_was_cut_off_is_refused_unless_its_blocks_are_whole() {
    let bytes = bytes(&made_up(4));
    for length in 0..bytes.len() {
        let cut = &bytes[..length];
        let whole = whole_blocks(cut);

        match Recorded::read(cut) {
            Ok(trace) => assert!(whole == length && trace.end.is_none(), "{length}"),
            Err(TraceError::NoTrace) => assert!(length < 8, "{length}"),
            Err(TraceError::CutOff { at }) => assert_eq!(at, whole.max(8) as u64, "{length}"),
            Err(error) => panic!("{length}: {error}"),
        }
    }
}

#[test]
fn a_changed_byte_is_noticed_wherever_it_is() {
    let bytes = bytes(&made_up(9));
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);

        assert!(Recorded::read(&*changed).is_err(), "byte {at}");
    }
}

/// The checksum is right, so only the reader of the content stands between the bytes and the rest.
#[test]
fn wild_content_is_refused_or_read_and_never_a_panic() {
    let mut random = fastrand::Rng::with_seed(1);
    for seed in 0..20_000 {
        random.seed(seed);
        let mut bytes = bytes(&Recorded::default());
        for _ in 0..random.usize(1..3) {
            let mut content = vec![random.u8(1..4)];
            content.extend((0..random.usize(0..40)).map(|_| random.u8(..)));
            bytes.extend(format::framed(&content));
        }

        let _ = Recorded::read(&*bytes);
    }
}

#[test]
fn foreign_bytes_and_later_versions_are_told_apart() {
    let mut later = bytes(&Recorded::default());
    later[7] = 9;

    for foreign in [
        &b""[..],
        b"cenote",
        b"\x7fELF and so on",
        b"{\"pools\": []}",
    ] {
        let error = Recorded::read(foreign).unwrap_err();
        assert!(matches!(error, TraceError::NoTrace), "{error}");
    }
    let error = Recorded::read(&*later).unwrap_err();
    assert!(matches!(error, TraceError::Version(9)), "{error}");
}

#[test]
fn a_visit_takes_about_ten_bytes() {
    let mut trace = Recorded::default();
    let visit = |nth: u32| Visit {
        arrival: nth * MS,
        waited: 2 * MS,
        outcome: Outcome::Returned { held: 15 * MS },
        site: 0,
        lane: 0,
    };
    trace.visits = (0..10_000).map(visit).collect();

    let each = bytes(&trace).len() / trace.visits.len();

    assert!(each <= 10, "{each}");
}

/// Returns the visits that these events become.
fn paired(events: &[Told]) -> (Vec<Visit>, u64) {
    let (mut pairing, mut records) = (Pairing::default(), Records::default());
    for &event in events {
        pairing.add(event, &mut records);
    }
    pairing.end(&mut records);
    let mut bytes = bytes(&Recorded::default());
    bytes.extend(records.take());
    (Recorded::read(&*bytes).unwrap().visits, pairing.lost)
}

fn acquired(at: u32, id: u64, waited: u32) -> Told {
    Told::Acquired {
        at: at * MS,
        id,
        waited: waited * MS,
        site: Location::caller(),
    }
}

fn released(at: u32, id: u64, held: u32) -> Told {
    Told::Released {
        at: at * MS,
        id,
        held: held * MS,
        site: Location::caller(),
    }
}

/// Returns arrival, wait and time held in milliseconds.
fn times(visit: &Visit) -> (u128, u128, Option<u128>) {
    let held = match visit.outcome {
        Outcome::Returned { held } => Some(held.as_millis()),
        _ => None,
    };
    (visit.arrival.as_millis(), visit.waited.as_millis(), held)
}

#[test]
fn a_return_that_is_told_after_the_next_grant_finds_its_own() {
    let events = [
        acquired(10, 1, 4),
        acquired(20, 1, 8),
        released(20, 1, 10),
        released(25, 1, 5),
    ];

    let (visits, lost) = paired(&events);

    let times: Vec<_> = visits.iter().map(times).collect();
    assert_eq!(times, [(6, 4, Some(10)), (12, 8, Some(5))]);
    assert_eq!(lost, 0);
}

#[test]
fn a_lease_from_before_the_recording_is_out_from_its_start() {
    let (visits, _) = paired(&[released(30, 1, 500)]);

    assert_eq!(times(&visits[0]), (0, 0, Some(30)));
}

#[test]
fn a_lost_return_spoils_no_later_visit() {
    let events = [acquired(10, 1, 0), acquired(50, 1, 0), released(60, 1, 10)];

    let (visits, lost) = paired(&events);

    assert_eq!(visits.len(), 1);
    assert_eq!((times(&visits[0]), lost), ((50, 0, Some(10)), 1));
}

#[test]
fn leases_that_are_out_at_the_end_are_kept() {
    let (visits, _) = paired(&[acquired(10, 1, 3), Told::Detached { id: 7 }]);

    assert_eq!(visits[0].outcome, Outcome::Kept);
    assert_eq!(visits.len(), 1);
}
