//! Settings of the pool in a URL:
//! `postgres://host/db?cenote.max_size=20&cenote.acquire_timeout=3s`.

use cenote::Config;
use serde::Deserialize;
use serde::de::value::{Error, MapDeserializer};
use serde::de::{Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use sqlx::Database;

use crate::build_error::BuildError;

const PREFIX: &str = "cenote.";

/// Refuses the URL of another database: the drivers ignore the scheme. A URL without `://`, like a
/// plain file name for SQLite, is left to the driver.
pub(crate) fn check_scheme<DB: Database>(url: &str) -> Result<(), BuildError> {
    match scheme(url) {
        Some(found) if !DB::URL_SCHEMES.contains(&found) => Err(BuildError::Scheme {
            database: DB::NAME,
            found: found.to_owned(),
            expected: DB::URL_SCHEMES,
        }),
        _ => Ok(()),
    }
}

/// Returns the scheme of a URL, which ends in `://`, or in `:` if it is one of a database.
pub(crate) fn scheme(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once(':')?;
    let is_scheme = scheme.chars().all(|letter| letter.is_ascii_alphanumeric());
    let ends = rest.starts_with("//") || constructor(scheme).is_some();
    Some(scheme).filter(|_| is_scheme && ends)
}

/// Returns the function that builds a handle of the database with this scheme.
pub(crate) fn constructor(scheme: &str) -> Option<&'static str> {
    match scheme.to_ascii_lowercase().as_str() {
        "postgres" | "postgresql" => Some("Db::postgres"),
        "mysql" | "mariadb" => Some("Db::mysql"),
        "sqlite" => Some("Db::sqlite"),
        _ => None,
    }
}

/// Returns the URL for the driver, and the names and values of the `cenote.` parameters.
pub(crate) fn split(url: &str) -> (String, Vec<(String, String)>) {
    let Some((address, query)) = url.split_once('?') else {
        return (url.to_owned(), Vec::new());
    };
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for pair in query.split('&') {
        match pair.strip_prefix(PREFIX) {
            Some(pair) => {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                // A fragment follows the last parameter, and says nothing to a server.
                let value = value.split_once('#').map_or(value, |(value, _)| value);
                ours.push((name.to_owned(), decode(value)));
            }
            None => theirs.push(pair),
        }
    }
    let rest = if theirs.is_empty() {
        address.to_owned()
    } else {
        format!("{address}?{}", theirs.join("&"))
    };
    (rest, ours)
}

/// Refuses a parameter that the driver would ignore. `known` is empty if the driver refuses it
/// itself.
pub(crate) fn check_parameters(url: &str, known: &[&str]) -> Result<(), BuildError> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let query = query.split_once('#').map_or(query, |(query, _)| query);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let name = decode(pair.split_once('=').map_or(pair, |(name, _)| name));
        // `options[name]=value` sets a parameter of the server.
        let plain = name.split_once('[').map_or(&*name, |(plain, _)| plain);
        if !known.is_empty() && !known.contains(&plain) {
            return Err(BuildError::Parameter(format!(
                "the driver does not know `{name}`, it knows `{}`",
                known.join("`, `")
            )));
        }
    }
    Ok(())
}

/// Returns an IPv6 address without the brackets that it has in a URL, which name lookup does not
/// accept.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) fn bare_host(host: &str) -> Option<String> {
    let host = host.strip_prefix('[')?.strip_suffix(']')?;
    Some(host.to_owned())
}

/// Returns whether the URL has this parameter.
pub(crate) fn has_parameter(url: &str, parameter: &str) -> bool {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    query.split('&').any(|pair| pair == parameter)
}

/// Returns the config of the parameters, with defaults for all other fields.
pub(crate) fn read(parameters: &[(String, String)]) -> Result<Config, String> {
    deserialize(parameters).map_err(|error| {
        // The error of a value does not name its field. Each parameter is read alone to find it.
        let alone = |pair| Some((pair, deserialize(std::slice::from_ref(pair)).err()?));
        match parameters.iter().find_map(alone) {
            Some(((name, _), error)) => format!("`{PREFIX}{name}`: {error}"),
            None => error.to_string(),
        }
    })
}

fn deserialize(parameters: &[(String, String)]) -> Result<Config, Error> {
    let pairs = parameters
        .iter()
        .map(|(name, value)| (name.as_str(), Text(value)));
    Config::deserialize(MapDeserializer::new(pairs))
}

/// Decodes `%20` and `+`.
fn decode(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [byte, after @ ..] = rest {
        let hex = after.get(..2).and_then(|hex| str::from_utf8(hex).ok());
        let coded = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        (rest, bytes) = match (byte, coded) {
            (b'%', Some(coded)) => (&after[2..], push(bytes, coded)),
            (b'+', _) => (after, push(bytes, b' ')),
            (byte, _) => (after, push(bytes, *byte)),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn push(mut bytes: Vec<u8>, byte: u8) -> Vec<u8> {
    bytes.push(byte);
    bytes
}

/// The value of a parameter: text that is parsed as whatever type its field has.
#[derive(Clone, Copy)]
struct Text<'a>(&'a str);

impl<'a> IntoDeserializer<'a, Error> for Text<'a> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! parsed {
    ($($method:ident, $visit:ident, $what:literal;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let wrong = |_| Error::custom(format!("`{}` is not {}", self.0, $what));
            visitor.$visit(self.0.parse().map_err(wrong)?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Text<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.0)
    }

    parsed! {
        deserialize_bool, visit_bool, "true or false";
        deserialize_u64, visit_u64, "a whole number";
        deserialize_f64, visit_f64, "a number";
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0 == "off" {
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
