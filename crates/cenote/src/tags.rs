//! The tags: a few bits of each holder, close together, so that one who joins the line learns at a glance that it holds nothing.

use std::hash::{Hash, Hasher};

use crate::ledger::SlotNo;
use crate::rt::Owner;
use crate::sync::{AtomicBool, AtomicU16, Ordering};

/// By slot. What was taken from a tray is not written down before the ledger is told of it.
pub(crate) struct Tags {
    tags: Box<[AtomicU16]>,
    /// There were more slots than tags: everybody may hold something.
    overflowed: AtomicBool,
}

impl Tags {
    pub(crate) fn for_size(max_size: usize) -> Self {
        let size = max_size.min(MOST);
        Self {
            tags: (0..size).map(|_| AtomicU16::new(0)).collect(),
            overflowed: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(crate) fn write(&self, slot: SlotNo, owner: Option<Owner>) {
        self.set(slot, owner.map_or(0, tag));
    }

    #[inline]
    pub(crate) fn clear(&self, slot: SlotNo) {
        self.set(slot, 0);
    }

    #[inline]
    fn set(&self, slot: SlotNo, value: u16) {
        match self.tags.get(slot) {
            Some(tag) => tag.store(value, Ordering::Relaxed),
            None => self.overflowed.store(true, Ordering::Relaxed),
        }
    }

    /// Might they hold something? If not, they do not: whoever holds something has written it down themselves.
    #[inline]
    pub(crate) fn may_hold(&self, owner: Owner) -> bool {
        let sought = tag(owner);
        let is_it = |tag: &AtomicU16| tag.load(Ordering::Relaxed) == sought;
        self.overflowed.load(Ordering::Relaxed) || self.tags.iter().any(is_it)
    }
}

/// More are as much work as to ask the ledger.
const MOST: usize = 256;

/// Two owners seldom have the same.
#[inline]
fn tag(owner: Owner) -> u16 {
    let mut tag = Tag(0);
    owner.hash(&mut tag);
    // The high bits depend on all others.
    (tag.0 >> 48) as u16
}

/// Cheap, for numbers that were given out one by one.
struct Tag(u64);

impl Hasher for Tag {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    #[inline]
    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_something_is_never_overlooked() {
        let tags = Tags::for_size(4);
        let owner = Owner::of_thread();
        assert!(!tags.may_hold(owner));
        tags.write(3, Some(owner));
        assert!(tags.may_hold(owner));
        tags.clear(3);
        assert!(!tags.may_hold(owner));
        tags.write(4, Some(owner));
        assert!(tags.may_hold(owner), "the pool has grown");
    }

    #[test]
    fn threads_differ_by_their_tags() {
        let other = std::thread::spawn(Owner::of_thread);
        let other = other.join().expect("an owner");
        let tags = Tags::for_size(1);
        tags.write(0, Some(other));
        assert!(!tags.may_hold(Owner::of_thread()));
    }
}
