//! Chooses the server to test against: a named one, one that runs already, or a private one.

use std::env;
use std::fmt;
use std::io;

use crate::server::Server;
use crate::url::Url;
use crate::wire::Welcome;
use crate::{mariadb, nats, pgbouncer, postgres, rabbitmq, redis};

/// One kind of server, and where and how to look for it.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) variable: &'static str,
    pub(crate) standard: &'static str,
    pub(crate) greet: Greet,
    pub(crate) start: fn() -> io::Result<Server>,
}

/// Connects once, and returns how the server receives a client.
pub(crate) type Greet = fn(&Url<'_>) -> io::Result<Welcome>;

/// A server to test against. Dropping it stops a private server.
#[derive(Debug)]
pub struct Found {
    name: &'static str,
    variable: &'static str,
    url: String,
    whence: String,
    private: Option<Server>,
}

impl Found {
    /// Returns the URL for clients.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the environment variable that names such a server.
    pub fn variable(&self) -> &'static str {
        self.variable
    }

    /// Returns the server itself, if it is private.
    pub fn private(&self) -> Option<&Server> {
        self.private.as_ref()
    }

    pub(crate) fn search(kind: &Kind) -> io::Result<Self> {
        if let Some(found) = Self::in_environment(kind.name, kind.variable, kind.greet)? {
            return Ok(found);
        }
        let why = match Url::parse(kind.standard).and_then(|url| (kind.greet)(&url)) {
            Ok(Welcome::LetIn) => {
                return Ok(Self {
                    name: kind.name,
                    variable: kind.variable,
                    url: kind.standard.to_owned(),
                    whence: "on its standard port".to_owned(),
                    private: None,
                });
            }
            Ok(Welcome::AsksPassword) => "it asks for a password".to_owned(),
            Err(error) => error.to_string(),
        };
        let why = format!(", since {}: {why}", kind.standard);
        let server = (kind.start)().map_err(|error| {
            let (name, variable) = (kind.name, kind.variable);
            let text = format!("no {name}: {variable} is not set{why}; a private one: {error}");
            io::Error::new(error.kind(), text)
        })?;
        Ok(Self::private_one(kind.name, kind.variable, &why, server))
    }

    /// A named server must be there. Any other server would not be the one that was asked for.
    pub(crate) fn in_environment(
        name: &'static str,
        variable: &'static str,
        greet: Greet,
    ) -> io::Result<Option<Self>> {
        let Some(url) = env::var(variable).ok().filter(|url| !url.is_empty()) else {
            return Ok(None);
        };
        Url::parse(&url).and_then(|url| greet(&url)).map_err(|error| {
            let text = format!(
                "no {name} where {variable} says: {error}; start it, correct {variable}, or unset it to have one found"
            );
            io::Error::new(error.kind(), text)
        })?;
        Ok(Some(Self {
            name,
            variable,
            url,
            whence: format!("named by {variable}"),
            private: None,
        }))
    }

    pub(crate) fn private_one(
        name: &'static str,
        variable: &'static str,
        why: &str,
        server: Server,
    ) -> Self {
        Self {
            name,
            variable,
            url: server.url().to_owned(),
            whence: format!("private, at {}{why}", server.addr()),
            private: Some(server),
        }
    }
}

/// Shows the kind and the place, but not the URL, which may have a password.
impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.whence)
    }
}

/// Finds one of each kind: PostgreSQL, MariaDB, Redis, NATS, RabbitMQ, and PgBouncer in front of
/// the first.
pub fn find_all() -> io::Result<Vec<Found>> {
    let postgres = postgres::find()?;
    let pgbouncer = pgbouncer::find(postgres.url())?;
    // PgBouncer is first, so that it is stopped before the server behind it.
    let others = [mariadb::find, redis::find, nats::find, rabbitmq::find];
    let mut found = vec![pgbouncer, postgres];
    for find in others {
        found.push(find()?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
