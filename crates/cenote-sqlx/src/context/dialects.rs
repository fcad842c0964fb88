//! The statement that applies a context, for each database.

#[cfg(any(feature = "postgres", feature = "mysql"))]
use std::fmt::Write as _;

use sqlx::{Database, Error};

use super::Settings;

/// How a database sets the settings of a session.
#[doc(hidden)]
pub trait Contextual: Database {
    /// Returns the text that sets `wanted` and sets back `gone`, in one round trip. `settings` are
    /// those of every session.
    fn context(wanted: &Settings, gone: &[&str], settings: &[String]) -> Result<String, Error>;
}

#[cfg(feature = "postgres")]
impl Contextual for sqlx::Postgres {
    fn context(wanted: &Settings, gone: &[&str], settings: &[String]) -> Result<String, Error> {
        let mut parts = Vec::new();
        for (name, value) in wanted {
            parts.push(format!(
                "set_config({}, {}, false)",
                literal(name)?,
                literal(value)?
            ));
        }
        for name in gone {
            parts.push(format!("set_config({}, NULL, false)", literal(name)?));
        }
        let mut sql = format!("SELECT {}", parts.join(", "));
        if !gone.is_empty() {
            for setting in settings {
                let _ = write!(sql, "; {setting}");
            }
        }
        return Ok(sql);

        /// Both characters are doubled in such a literal, whatever the settings of the session say.
        fn literal(text: &str) -> Result<String, Error> {
            if text.contains('\0') {
                return Err(Error::InvalidArgument(String::from(
                    "a context has a zero byte, which PostgreSQL cannot store",
                )));
            }
            let text = text.replace('\\', "\\\\").replace('\'', "''");
            Ok(format!("E'{text}'"))
        }
    }
}

#[cfg(feature = "mysql")]
impl Contextual for sqlx::MySql {
    /// A variable of the session is kept in a variable of the user, because its default is not
    /// always the value that it had.
    fn context(wanted: &Settings, gone: &[&str], _: &[String]) -> Result<String, Error> {
        let mut parts = Vec::new();
        for (name, value) in wanted {
            let value = literal(value);
            match variable(name)? {
                (true, name) => parts.push(format!("@`{name}` = {value}")),
                (false, name) => {
                    let was = format!("@`cenote_was_{name}`");
                    parts.push(format!("{was} = COALESCE({was}, @@SESSION.{name})"));
                    parts.push(format!("SESSION {name} = {value}"));
                }
            }
        }
        for name in gone {
            match variable(name)? {
                (true, name) => parts.push(format!("@`{name}` = NULL")),
                (false, name) => {
                    let was = format!("@`cenote_was_{name}`");
                    parts.push(format!("SESSION {name} = {was}"));
                    parts.push(format!("{was} = NULL"));
                }
            }
        }
        return Ok(format!("SET {}", parts.join(", ")));

        /// Returns whether it is a variable of the user, and its plain name.
        fn variable(name: &str) -> Result<(bool, &str), Error> {
            let plain = name.strip_prefix('@').unwrap_or(name);
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_$.".contains(letter);
            if plain.is_empty() || !plain.chars().all(is_plain) {
                return Err(Error::InvalidArgument(format!(
                    "`{name}` is no name of a variable: write `time_zone` or `@tenant`"
                )));
            }
            Ok((plain.len() < name.len(), plain))
        }

        /// A number, or text in a form that no mode of the server changes.
        fn literal(text: &str) -> String {
            if text.parse::<i64>().is_ok() {
                return text.to_owned();
            }
            let bytes = text.bytes().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            });
            format!("_utf8mb4 X'{bytes}'")
        }
    }
}

#[cfg(feature = "sqlite")]
impl Contextual for sqlx::Sqlite {
    fn context(_: &Settings, _: &[&str], _: &[String]) -> Result<String, Error> {
        Err(Error::InvalidArgument(String::from(
            "SQLite has no settings of a session, so it has no context: pass the values as \
             arguments",
        )))
    }
}
