//! The resource of the ledger's tests.

use std::cmp::Ordering;

use super::{Resource, SlotNo};

/// A resource that exists once, and can be told from all others by its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    number: u64,
    pub(super) slot: SlotNo,
    pub(super) uses: u64,
}

impl Token {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            slot: SlotNo::MAX,
            uses: 0,
        }
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Token {}

impl PartialOrd for Token {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Token {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number)
    }
}

impl Resource for Token {
    type Error = &'static str;

    fn opened(&mut self, slot: SlotNo, _: u64) {
        self.slot = slot;
    }

    fn lent(&mut self, uses: u64, _: bool) {
        self.uses = uses;
    }

    fn slot(&self) -> SlotNo {
        self.slot
    }
}

/// The resource of this slot.
pub(super) fn token_of(slot: SlotNo) -> Token {
    Token {
        slot,
        ..Token::new(slot as u64)
    }
}
