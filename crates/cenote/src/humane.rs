//! Durations as people write them in a configuration file: `"30s"`, `"1h 30m"`, and `"off"` for none.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserializer, Error, Unexpected, Visitor};
use serde::ser::Serializer;

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
