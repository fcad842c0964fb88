//! The name of a member that people can read.

use std::fmt;
use std::fs;
use std::process;

use super::MemberId;

/// What a member is called on pages, in errors and in logs: 1 to 32 visible ASCII characters. Two
/// members may have the same name, because [`MemberId`] tells them apart.
///
/// ```
/// use cenote_fleet::Name;
///
/// assert_eq!(Name::new("api-3").unwrap().as_str(), "api-3");
/// assert!(Name::new("api 3").is_none() && Name::new("").is_none());
/// assert!(Name::new(&"x".repeat(33)).is_none());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    bytes: [u8; MOST],
    length: u8,
}

/// All members write all names at every renewal, so names are short.
const MOST: usize = 32;

impl Name {
    /// Returns the name, if the text can be one.
    pub fn new(text: &str) -> Option<Self> {
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let mut bytes = [0; MOST];
        bytes
            .get_mut(..text.len())?
            .copy_from_slice(text.as_bytes());
        let length = u8::try_from(text.len()).ok()?;
        is_plain.then_some(Self { bytes, length })
    }

    /// Returns the name of a member that has told none.
    pub(super) fn of(id: MemberId) -> Self {
        Self::new(&id.to_string()).expect("an id has 16 digits")
    }

    /// Returns the host, as far as there is room for it, and the number of the process.
    pub(crate) fn of_process() -> Self {
        let id = process::id();
        let host = host().unwrap_or_default();
        let host = host.split('.').next().unwrap_or_default();
        let host = host.chars().filter(char::is_ascii_graphic);
        let host: String = host.take(MOST - ":4294967295".len()).collect();
        let name = match host.is_empty() {
            true => Self::new(&format!("process:{id}")),
            false => Self::new(&format!("{host}:{id}")),
        };
        name.expect("both parts fit")
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        let text = self.bytes.get(..self.length.into());
        let text = text.and_then(|text| str::from_utf8(text).ok());
        text.expect("a name is made of ASCII only")
    }
}

/// The standard library cannot ask for the name of the host.
fn host() -> Option<String> {
    let told = ["HOSTNAME", "COMPUTERNAME"].map(|name| std::env::var(name).ok());
    let told = told.into_iter().flatten().find(|host| !host.is_empty());
    told.or_else(|| fs::read_to_string("/proc/sys/kernel/hostname").ok())
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
