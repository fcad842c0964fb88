//! The bytes of a cell: a version, and numbers of variable length.
//!
//! A byte with the version comes first, then the epoch (two numbers of eight bytes), whether the
//! cell is learned, and the count of members. Each member is its id (eight bytes) and the length of
//! its record. The record is seven numbers, whether the member is fenced, and the name with its
//! length.
//!
//! What a later program adds at the end of a record is skipped, and is gone until that program
//! renews. So whatever may be lost for a second can be added there, and anything else needs another
//! version. Version 1 had neither lengths nor names. It is read, and a program that writes it
//! refuses version 2.

use std::collections::BTreeMap;
use std::fmt;

use super::{Cell, Epoch, MemberId, Name, Record};

/// The version that this code writes. It reads those before it, too.
const VERSION: u8 = 2;

/// The version whose records have no length and no name.
const WITHOUT_NAMES: u8 = 1;

/// Why bytes are not a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// A newer program has written them. They must not be overwritten.
    Newer {
        /// The version of the layout.
        version: u8,
    },
    /// No version of this crate has written them.
    Garbled,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer { version } => write!(
                f,
                "the cell of the fleet has layout {version}, and this program reads up to \
                 {VERSION}: upgrade cenote-fleet here, or choose another group"
            ),
            Self::Garbled => f.write_str(
                "the cell of the fleet is garbled: another program writes to it, or its storage \
                 is damaged",
            ),
        }
    }
}

impl std::error::Error for DecodeError {}

impl Cell {
    /// Returns the bytes that the engine stores.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(20 + 40 * self.members.len());
        bytes.push(VERSION);
        bytes.extend(self.epoch.origin.to_le_bytes());
        bytes.extend(self.epoch.nonce.to_le_bytes());
        bytes.push(u8::from(self.learned));
        put(&mut bytes, self.members.len() as u64);
        for (id, record) in &self.members {
            bytes.extend(id.0.to_le_bytes());
            let mut own = Vec::with_capacity(40);
            put_record(&mut own, record);
            put(&mut bytes, own.len() as u64);
            bytes.extend(own);
        }
        bytes
    }

    /// Reads what [`encode`](Cell::encode) has written. Bytes of a newer version are refused.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        match bytes.first() {
            Some(&version) if version > VERSION => Err(DecodeError::Newer { version }),
            Some(&version @ WITHOUT_NAMES..) => {
                read(&bytes[1..], version).ok_or(DecodeError::Garbled)
            }
            _ => Err(DecodeError::Garbled),
        }
    }
}

fn read(mut bytes: &[u8], version: u8) -> Option<Cell> {
    let bytes = &mut bytes;
    let epoch = Epoch {
        origin: take_whole(bytes)?,
        nonce: take_whole(bytes)?,
    };
    let learned = take_flag(bytes)?;
    let count = take(bytes)?;
    let mut members = BTreeMap::new();
    for _ in 0..count {
        let id = MemberId(take_whole(bytes)?);
        let record = match version {
            WITHOUT_NAMES => take_numbers(bytes, id)?,
            _ => {
                let length = take_small(bytes)?;
                let mut own = take_bytes(bytes, length)?;
                let numbers = take_numbers(&mut own, id)?;
                let length = take_byte(&mut own)?.into();
                let name = str::from_utf8(take_bytes(&mut own, length)?).ok()?;
                Record {
                    name: Name::new(name)?,
                    ..numbers
                }
            }
        };
        members.insert(id, record);
    }
    let is_whole = bytes.is_empty() && members.len() as u64 == count;
    is_whole.then_some(Cell {
        epoch,
        learned,
        members,
    })
}

fn put_record(bytes: &mut Vec<u8>, record: &Record) {
    put(bytes, record.beat);
    put(bytes, record.ttl.into());
    put(bytes, record.capacity.into());
    put(bytes, record.floor.into());
    put(bytes, record.weight.into());
    put(bytes, record.has.into());
    put(bytes, record.wants.into());
    bytes.push(u8::from(record.fenced));
    let name = record.name.as_str();
    put(bytes, name.len() as u64);
    bytes.extend(name.as_bytes());
}

/// Reads all of a record but its name.
fn take_numbers(bytes: &mut &[u8], id: MemberId) -> Option<Record> {
    Some(Record {
        beat: take(bytes)?,
        ttl: take_small(bytes)?,
        capacity: take_small(bytes)?,
        floor: take_small(bytes)?,
        weight: take_small(bytes)?,
        has: take_small(bytes)?,
        wants: take_small(bytes)?,
        fenced: take_flag(bytes)?,
        name: Name::of(id),
    })
}

/// Seven bits per byte, the lowest first. The highest bit says that another byte follows.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = take_byte(bytes)?;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn take_small(bytes: &mut &[u8]) -> Option<u32> {
    take(bytes)?.try_into().ok()
}

fn take_whole(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*number))
}

fn take_bytes<'a>(bytes: &mut &'a [u8], length: u32) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length.try_into().ok()?)?;
    *bytes = rest;
    Some(taken)
}

fn take_flag(bytes: &mut &[u8]) -> Option<bool> {
    match take_byte(bytes)? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*byte)
}
