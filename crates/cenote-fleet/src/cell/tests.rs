//! The cell and its bytes.

use fastrand::Rng;

use super::*;

fn any_record(rng: &mut Rng) -> Record {
    let mut number = || rng.u32(..) >> rng.u32(..32);
    Record {
        ttl: number(),
        capacity: number(),
        floor: number(),
        weight: number(),
        has: number(),
        wants: number(),
        beat: rng.u64(..) >> rng.u32(..64),
        fenced: rng.bool(),
        name: any_name(rng),
    }
}

fn any_name(rng: &mut Rng) -> Name {
    let letters = (0..rng.usize(1..=32)).map(|_| rng.char('!'..='~'));
    Name::new(&letters.collect::<String>()).unwrap()
}

fn any_cell(rng: &mut Rng) -> Cell {
    let epoch = Epoch {
        origin: rng.u64(..),
        nonce: rng.u64(..),
    };
    let mut cell = Cell::new(epoch);
    cell.learned = rng.bool();
    for _ in 0..rng.usize(..6) {
        let record = any_record(rng);
        cell.members.insert(MemberId(rng.u64(..)), record);
    }
    cell
}

#[test]
fn every_cell_comes_back_from_its_bytes() {
    for seed in 0..500 {
        let cell = any_cell(&mut Rng::with_seed(seed));

        let back = Cell::decode(&cell.encode());

        assert_eq!(back, Ok(cell), "seed {seed}");
    }
}

#[test]
fn a_cell_of_a_newer_version_is_refused_by_name() {
    let mut bytes = any_cell(&mut Rng::with_seed(1)).encode();
    bytes[0] = 7;

    let error = Cell::decode(&bytes).unwrap_err();

    assert_eq!(error, DecodeError::Newer { version: 7 });
    let text = "the cell of the fleet has layout 7, and this program reads up to 2: upgrade \
                cenote-fleet here, or choose another group";
    assert_eq!(error.to_string(), text);
}

#[test]
fn cut_or_lengthened_bytes_are_garbled_and_never_panic() {
    for seed in 0..200 {
        let bytes = any_cell(&mut Rng::with_seed(seed)).encode();

        for end in 0..bytes.len() {
            assert_eq!(Cell::decode(&bytes[..end]), Err(DecodeError::Garbled));
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(Cell::decode(&longer), Err(DecodeError::Garbled));
    }
}

#[test]
fn changed_bytes_never_panic() {
    let mut rng = Rng::with_seed(3);
    for _ in 0..2000 {
        let mut bytes = any_cell(&mut rng).encode();
        let place = rng.usize(..bytes.len());
        bytes[place] = rng.u8(..);

        // A change may make another cell. It must read back as itself.
        if let Ok(cell) = Cell::decode(&bytes) {
            assert_eq!(Cell::decode(&cell.encode()), Ok(cell));
        }
    }
}

#[test]
fn a_member_takes_about_twenty_bytes_and_its_name() {
    let mut cell = Cell::new(Epoch {
        origin: 1,
        nonce: 2,
    });
    for id in 0..100 {
        let record = Record {
            beat: 100_000,
            ttl: 10_000,
            capacity: 80,
            floor: 1,
            weight: 1,
            has: 12,
            wants: 20,
            fenced: false,
            name: Name::new("api-3").unwrap(),
        };
        cell.members.insert(MemberId(id), record);
    }

    assert!(cell.encode().len() <= 2_720, "{}", cell.encode().len());
}

#[test]
fn the_lowest_capacity_counts() {
    let mut rng = Rng::with_seed(4);
    let mut cell = Cell::new(Epoch {
        origin: 1,
        nonce: 2,
    });
    assert_eq!((cell.capacity(), cell.granted()), (0, 0));
    for (id, capacity) in [(1, 80), (2, 60), (3, 70)] {
        let record = Record {
            capacity,
            has: 5,
            ..any_record(&mut rng)
        };
        cell.members.insert(MemberId(id), record);
    }

    assert_eq!((cell.capacity(), cell.granted()), (60, 15));
}

/// One member, as the first layout had it.
const FIRST_LAYOUT: &[u8] = b"\x01\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x01\x01\
      \x0a\0\0\0\0\0\0\0\x07\x90\x4e\x50\x01\x02\x0c\x14\x01";

#[test]
fn a_cell_of_the_first_layout_has_members_that_are_named_by_their_ids() {
    let cell = Cell::decode(FIRST_LAYOUT).unwrap();

    let id = MemberId(10);
    let record = Record {
        beat: 7,
        ttl: 10_000,
        capacity: 80,
        floor: 1,
        weight: 2,
        has: 12,
        wants: 20,
        fenced: true,
        name: Name::new("000000000000000a").unwrap(),
    };
    assert_eq!(cell.members, BTreeMap::from([(id, record)]));
    assert!(cell.learned);
    assert_eq!(Cell::decode(&cell.encode()), Ok(cell));
}

#[test]
fn what_a_later_program_adds_to_a_record_is_skipped() {
    let mut cell = Cell::decode(FIRST_LAYOUT).unwrap();
    let name = Name::new("api-3").unwrap();
    cell.members
        .values_mut()
        .for_each(|record| record.name = name);
    let mut bytes = cell.encode();

    let length = bytes.len() - b"\x07\x90\x4e\x50\x01\x02\x0c\x14\x01\x05api-3".len() - 1;
    bytes[length] += 3;
    bytes.extend(b"new");

    assert_eq!(Cell::decode(&bytes), Ok(cell));
}
