//! URLs: what the parser of the crate `redis` does not say or see.

use std::borrow::Cow;

use crate::build_error::BuildError;

/// The parameters that the parser knows. It ignores all others.
const PARAMETERS: [&str; 4] = ["protocol", "db", "user", "pass"];

/// Returns the URL for the parser, and whether TLS is asked for. The parser knows the TLS schemes
/// only with a feature that brings TLS of its own.
pub(crate) fn read(url: &str) -> Result<(Cow<'_, str>, bool), BuildError> {
    let before = url.split_once('#').map_or(url, |(before, _)| before);
    let query = before.split_once('?').map_or("", |(_, query)| query);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let name = pair.split_once('=').map_or(pair, |(name, _)| name);
        if !PARAMETERS.contains(&name) {
            return Err(BuildError::Parameter(name.to_owned()));
        }
    }
    for (secure, plain) in [("rediss://", "redis://"), ("valkeys://", "valkey://")] {
        let Some(rest) = url.strip_prefix(secure) else {
            continue;
        };
        if rest.contains('#') {
            let why = "a URL with `#insecure` would trust every server: use `root_certificates`";
            return Err(BuildError::Tls(why.to_owned()));
        }
        return Ok((Cow::Owned(format!("{plain}{rest}")), true));
    }
    Ok((Cow::Borrowed(url), false))
}
