//! Durations as people write them in a configuration file: `"30s"`, `"1h 30m"`, and `"off"` for none.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;

const OFF: &str = "off";

pub(crate) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_duration(*value))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let value = deserializer.deserialize_any(Humane)?;
    value.ok_or_else(|| D::Error::custom("this duration cannot be off"))
}

/// The same for a duration that may be off.
pub(crate) mod optional {
    use super::{Deserializer, Duration, Humane, OFF, Serializer};

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
        deserializer.deserialize_any(Humane)
    }
}

struct Humane;

impl Visitor<'_> for Humane {
    type Value = Option<Duration>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a duration with its unit, like \"30s\", \"250ms\" or \"1h 30m\", or \"{OFF}\""
        )
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        if text == OFF {
            return Ok(None);
        }
        humantime::parse_duration(text)
            .map(Some)
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}
