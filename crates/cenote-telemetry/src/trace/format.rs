//! The bytes of a trace: a mark, then blocks with a length and a checksum, then numbers in them.
//!
//! | part | bytes |
//! |---|---|
//! | mark | `cenotet` and the version, 1 |
//! | block | length of its content (u32), checksum of its content (u32), content |
//!
//! Both numbers have their lowest byte first. The first byte of the content says what kind of block
//! it is. Numbers inside a block have seven bits per byte, the lowest first (LEB128), and times are
//! microseconds.

use std::time::Duration;

pub(super) const MARK: [u8; 8] = *b"cenotet\x01";

/// The length and the checksum.
pub(super) const HEAD: usize = 8;

/// No block is longer, so a broken length is noticed before memory is taken for it.
pub(super) const LONGEST_BLOCK: usize = 1 << 20;

/// The kinds of blocks. The first block of a trace is a start, and the last one an end.
pub(super) const START: u8 = 1;
pub(super) const RECORDS: u8 = 2;
pub(super) const END: u8 = 3;

/// Returns how many of these bytes are the mark and whole blocks of a trace. A trace that was cut
/// off can be shortened to them, and is then a recording that ended early.
///
/// ```
/// use std::time::Duration;
/// use cenote_telemetry::trace::{End, Recorded, Stop, whole_blocks};
///
/// let lasted = Duration::from_secs(60);
/// let end = End { stop: Stop::Time, lasted, lost: 0, cancelled: 0, refused: 0 };
/// let mut bytes = Vec::new();
/// Recorded { end: Some(end), ..Recorded::default() }.write(&mut bytes)?;
/// assert_eq!(whole_blocks(&bytes), bytes.len());
///
/// bytes.pop();
/// bytes.truncate(whole_blocks(&bytes));
/// assert!(Recorded::read(&*bytes)?.end.is_none(), "the last block was cut off");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub fn whole_blocks(bytes: &[u8]) -> usize {
    if !bytes.starts_with(&MARK) {
        return 0;
    }
    let mut whole = MARK.len();
    while let Some(head) = bytes.get(whole..whole + HEAD) {
        let (length, _) = parse_head(head);
        if length > LONGEST_BLOCK || bytes.len() - whole - HEAD < length {
            break;
        }
        whole += HEAD + length;
    }
    whole
}

/// Adds the length and the checksum to the content of a block.
pub(super) fn framed(content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    let mut block = Vec::with_capacity(HEAD + content.len());
    block.extend(length.to_le_bytes());
    block.extend(checksum(content).to_le_bytes());
    block.extend(content);
    block
}

/// Returns the length and the checksum.
pub(super) fn parse_head(head: &[u8]) -> (usize, u32) {
    let number = |at: usize| {
        let bytes = head.get(at..at + 4).and_then(|four| four.try_into().ok());
        u32::from_le_bytes(bytes.unwrap_or([0xff; 4]))
    };
    (number(0) as usize, number(4))
}

/// FNV-1a. It finds broken disks and cables, not attackers.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum: u32, &byte| {
        (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

pub(super) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Small numbers stay small, also below zero: 0, -1, 1, -2 become 0, 1, 2, 3.
pub(super) fn put_signed(bytes: &mut Vec<u8>, number: i64) {
    put(bytes, (number << 1 ^ number >> 63) as u64);
}

/// Zero stands for `None`.
pub(super) fn put_option(bytes: &mut Vec<u8>, number: Option<u64>) {
    put(bytes, number.map_or(0, |number| number.saturating_add(1)));
}

pub(super) fn put_text(bytes: &mut Vec<u8>, text: &str) {
    let mut most = text.len().min(LONGEST_TEXT);
    while !text.is_char_boundary(most) {
        most -= 1;
    }
    put(bytes, most as u64);
    bytes.extend(&text.as_bytes()[..most]);
}

/// Longer names are cut.
const LONGEST_TEXT: usize = 1000;

/// Reads the content of a block. `None`: the content ends too early, or is no number or text.
pub(super) struct Content<'a>(pub(super) &'a [u8]);

impl<'a> Content<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    pub(super) fn option(&mut self) -> Option<Option<u64>> {
        Some(self.number()?.checked_sub(1))
    }

    pub(super) fn size(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub(super) fn time(&mut self) -> Option<Duration> {
        Some(Duration::from_micros(self.number()?))
    }

    pub(super) fn text(&mut self) -> Option<String> {
        let length = self.size()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
