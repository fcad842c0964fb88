//! How people write a duration in a file: `"30s"`, or `"off"` for none.

use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::Serializer;

const OFF: &str = "off";

pub(crate) fn serialize<S: Serializer>(value: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => to.collect_str(&humantime::format_duration(*value)),
        None => to.serialize_str(OFF),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    if text == OFF {
        return Ok(None);
    }
    let wrong = |_| {
        Error::custom(format!(
            "`{text}` is not a duration with its unit, like \"30s\" or \"250ms\", or \"off\""
        ))
    };
    humantime::parse_duration(&text).map(Some).map_err(wrong)
}
