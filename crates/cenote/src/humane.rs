//! What people write in a configuration file: durations as `"30s"`, `"1h 30m"`, and `"off"` for none; and words for a choice.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::ser::Serializer;

use crate::config::{IdleOrder, Nested, OnOpenError, WarmUp};

const OFF: &str = "off";

pub(crate) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_duration(*value))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    deserializer.deserialize_any(Humane)
}

/// The same for a duration that may be off.
pub(crate) mod optional {
    use super::{Deserializer, Duration, HumaneOrOff, OFF, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => super::serialize(value, serializer),
            None => serializer.serialize_str(OFF),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        deserializer.deserialize_any(HumaneOrOff)
    }
}

struct Humane;

impl Visitor<'_> for Humane {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration with its unit, like \"30s\", \"250ms\" or \"1h 30m\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
        humantime::parse_duration(text).map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }
}

struct HumaneOrOff;

impl Visitor<'_> for HumaneOrOff {
    type Value = Option<Duration>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Humane.expecting(f)?;
        write!(f, ", or \"{OFF}\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Option<Duration>, E> {
        match humantime::parse_duration(text) {
            _ if text == OFF => Ok(None),
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }

    fn visit_unit<E: Error>(self) -> Result<Option<Duration>, E> {
        Ok(None)
    }
}

/// Reads a choice by its word. What serde derives takes a table too, asks for one in its errors, and does not say which words there are.
macro_rules! words {
    ($($type:ident: $($word:literal => $variant:ident),+;)+) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Words {
                    words: &[$($word),+],
                    choices: &[$($type::$variant),+],
                })
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

struct Words<T: 'static> {
    words: &'static [&'static str],
    choices: &'static [T],
}

impl<T: Copy> Visitor<'_> for Words<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of the words {:?}", self.words)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let mut pairs = self.words.iter().zip(self.choices);
        let found = pairs.find(|(word, _)| **word == text);
        let unknown = || E::unknown_variant(text, self.words);
        found.map(|(_, choice)| *choice).ok_or_else(unknown)
    }
}
