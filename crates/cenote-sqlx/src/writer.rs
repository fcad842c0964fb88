//! The right to write, for a database that has room for one writer: a pool of one, so that writers stand in line and errors name who holds it.

use std::time::Instant;

use cenote::{Lease, Manager};

/// Makes the one right to write.
#[derive(Debug)]
pub(crate) struct Writer;

impl Manager for Writer {
    type Resource = ();
    /// Never seen: it is the same as that of connections, so that both travel alike.
    type Error = sqlx::Error;

    async fn open(&self) -> Result<(), sqlx::Error> {
        Ok(())
    }
}

/// Leave to ask for a connection. A reader has the default, and so has every caller of a database
/// without a line of writers.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// The right to write, if it had to be waited for.
    pub(crate) writer: Option<Lease<Writer>>,
    /// The deadline of the whole call, if part of its time was spent in line.
    pub(crate) deadline: Option<Instant>,
}
