//! A small parser of URLs: `scheme://user:password@host:port/path?query`. Only the host is
//! required.

use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Url<'a> {
    pub(crate) user: Option<&'a str>,
    pub(crate) password: Option<&'a str>,
    pub(crate) host: &'a str,
    pub(crate) port: Option<u16>,
    /// The path without its first slash.
    pub(crate) path: &'a str,
}

impl<'a> Url<'a> {
    pub(crate) fn parse(url: &'a str) -> io::Result<Self> {
        // The error does not show the URL, which may have a password.
        let wrong = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
        let rest = url.split_once("://").map(|(_, rest)| rest);
        let rest = rest.ok_or_else(|| wrong("a URL without `://`"))?;
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority),
        };
        let (user, password) = match login.map(|login| login.split_once(':').ok_or(login)) {
            Some(Ok((user, password))) => (Some(user), Some(password)),
            Some(Err(user)) => (Some(user), None),
            None => (None, None),
        };
        // A colon in brackets belongs to the address: `[::1]:5432`.
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                let port = port.parse().map_err(|_| wrong("a URL with a bad port"))?;
                (host, Some(port))
            }
            _ => (place, None),
        };
        if host.is_empty() {
            return Err(wrong("a URL without a host"));
        }
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Ok(Self {
            user,
            password,
            host,
            port,
            path,
        })
    }
}

#[cfg(test)]
mod tests;
