//! How people write settings in a file: durations as `"30s"`, `"off"` for none, a word per choice.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::config::{IdleOrder, Nested, OnOpenError, WarmUp};

const OFF: &str = "off";

pub(crate) fn serialize<T: Setting, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    value.write(to)
}

pub(crate) fn deserialize<'de, T: Setting, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    from.deserialize_any(Reader(PhantomData))
}

/// The value of a setting.
pub(crate) trait Setting: Sized {
    fn expecting(f: &mut fmt::Formatter<'_>) -> fmt::Result;
    fn parse(text: &str) -> Option<Self>;
    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error>;
}

impl Setting for Duration {
    fn expecting(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration with its unit, like \"30s\", \"250ms\" or \"1h 30m\"")
    }

    fn parse(text: &str) -> Option<Self> {
        humantime::parse_duration(text).ok()
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&humantime::format_duration(*self))
    }
}

impl<T: Setting> Setting for Option<T> {
    fn expecting(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::expecting(f)?;
        write!(f, ", or \"{OFF}\"")
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            OFF => Some(None),
            _ => T::parse(text).map(Some),
        }
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(value) => value.write(to),
            None => to.serialize_str(OFF),
        }
    }
}

macro_rules! numbers {
    ($($type:ident)*) => {$(
        impl Setting for $type {
            fn expecting(f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number")
            }

            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }

            fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                self.serialize(to)
            }
        }
    )*};
}

numbers!(u64 usize);

/// Code that serde derives for a choice would also read a table, and ask for one in its errors.
macro_rules! words {
    ($($type:ident: $($word:literal => $variant:ident),+;)+) => {$(
        impl Setting for $type {
            fn expecting(f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "one of the words {:?}", [$($word),+])
            }

            fn parse(text: &str) -> Option<Self> {
                match text {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }

            fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(match self { $(Self::$variant => $word),+ })
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                serialize(self, to)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                deserialize(from)
            }
        }
    )+};
}

words! {
    OnOpenError: "fail" => Fail, "retry" => Retry;
    IdleOrder: "hot" => Hot, "oldest" => Oldest;
    Nested: "allow" => Allow, "report" => Report, "deny" => Deny;
    WarmUp: "required" => Required, "best_effort" => BestEffort;
}

struct Reader<T>(PhantomData<T>);

impl<T: Setting> Reader<T> {
    fn read<E: Error>(self, text: &str, seen: Unexpected<'_>) -> Result<T, E> {
        T::parse(text).ok_or_else(|| E::invalid_value(seen, &self))
    }
}

/// Numbers are read as text, because environment variables and URLs have nothing else.
impl<T: Setting> Visitor<'_> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::expecting(f)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        self.read(text, Unexpected::Str(text))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.read(&number.to_string(), Unexpected::Unsigned(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.read(&number.to_string(), Unexpected::Signed(number))
    }

    fn visit_unit<E: Error>(self) -> Result<T, E> {
        self.read(OFF, Unexpected::Unit)
    }
}
