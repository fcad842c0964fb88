//! Files of pool settings: read, and checked by the pool itself.

use std::path::Path;

use cenote::{Config, Pool};
use serde::Serialize;

use crate::args::CheckArgs;
use crate::failure::{Failure, Verdict};
use crate::out;

/// A file that was checked, for `--json`.
#[derive(Debug, Serialize)]
struct Checked {
    file: String,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<String>,
    /// The settings, with the defaults of those that the file leaves out.
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<Config>,
}

/// Checks a file, and prints what is wrong with it.
pub(crate) fn check(args: &CheckArgs) -> Result<Verdict, Failure> {
    let text = text_of(&args.file)?;
    let mut checked = Checked {
        file: args.file.display().to_string(),
        ok: false,
        error: None,
        field: None,
        value: None,
        allowed: None,
        config: None,
    };
    match parse(&args.file, &text) {
        Err(error) => checked.error = Some(error),
        Ok(config) => match try_out(config.clone()) {
            Ok(()) => (checked.ok, checked.config) = (true, Some(config)),
            Err(error) => {
                checked.error = Some(error.to_string());
                checked.field = Some(error.field());
                checked.value = Some(error.value().to_owned());
                checked.allowed = Some(error.allowed().to_owned());
            }
        },
    }
    if args.json {
        out::print_json(&checked)?;
    } else {
        let result = checked.error.as_deref().unwrap_or("ok");
        out::print(&format!("{}: {result}\n", checked.file))?;
    }
    Ok(match checked.ok {
        true => Verdict::Fine,
        false => Verdict::Findings,
    })
}

/// Reads the settings of a pool, or the defaults if there is no file.
pub(crate) fn read(file: Option<&Path>) -> Result<Config, Failure> {
    let Some(file) = file else {
        return Ok(Config::default());
    };
    let wrong = |error: String| Failure::from(format!("{}: {error}", file.display()));
    let config = parse(file, &text_of(file)?).map_err(wrong)?;
    try_out(config.clone()).map_err(|error| wrong(error.to_string()))?;
    Ok(config)
}

fn text_of(file: &Path) -> Result<String, Failure> {
    let shown = file.display();
    std::fs::read_to_string(file).map_err(|error| {
        format!("cannot read `{shown}`: {error}; check path and permissions").into()
    })
}

fn parse(file: &Path, text: &str) -> Result<Config, String> {
    let is_json = file.extension().is_some_and(|ending| ending == "json");
    if is_json {
        return serde_json::from_str(text).map_err(|error| error.to_string());
    }
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = 1 + text[..start].matches('\n').count();
        let message = error.message().lines().collect::<Vec<_>>().join(" ");
        format!("line {line}: {message}")
    })
}

/// Builds a pool that opens nothing: `build` is the only place that refuses a value.
fn try_out(config: Config) -> Result<(), cenote::ConfigError> {
    Pool::from_fn(async || Ok::<_, std::convert::Infallible>(()))
        .config(config)
        .build()
        .map(drop)
}

#[cfg(test)]
mod tests;
