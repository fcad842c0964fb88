//! The configuration of a pool as rows of a table, in the order in which `Config` documents it.

use std::fmt;

use cenote::Config;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::view::SettingView;

/// Returns every setting but the name, with its default and whether they differ.
pub(crate) fn rows(config: &Config) -> Vec<SettingView> {
    let (now, default) = (fields(config), fields(&Config::default()));
    let pairs = now.into_iter().zip(default);
    let settings = pairs.filter(|((name, _), _)| name != "name");
    settings
        .map(|((name, value), (_, default))| SettingView {
            changed: value != default,
            name,
            value: text(value),
            default: text(default),
        })
        .collect()
}

/// Returns the fields in the order in which they are written.
fn fields(config: &Config) -> Vec<(String, Value)> {
    let written = serde_json::to_string(config).unwrap_or_default();
    let read = serde_json::from_str::<Fields>(&written);
    read.map_or_else(|_| Vec::new(), |fields| fields.0)
}

fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// A map of `serde_json` would sort them by name.
struct Fields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Fields(fields))
    }
}

#[cfg(test)]
mod tests;
