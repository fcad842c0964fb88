//! The right to write, for a database with one writer at a time. It is a pool of size one, so that
//! writers are served in order and a timeout names the writer that holds it.

use std::time::Instant;

use cenote::{Lease, Manager};

/// The manager of the right to write.
#[derive(Debug)]
pub(crate) struct Writer;

impl Manager for Writer {
    type Resource = ();
    /// `open` never fails. The type is that of connections, so that both errors convert alike.
    type Error = sqlx::Error;

    async fn open(&self) -> Result<(), sqlx::Error> {
        Ok(())
    }
}

/// What a caller has before it asks for a connection. Readers have the default, and so have all
/// callers of a database with many writers.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// The right to write, if the caller needs it and its scope does not have it.
    pub(crate) writer: Option<Lease<Writer>>,
    /// The deadline of the whole call, if part of its time was spent on the wait for the right.
    pub(crate) deadline: Option<Instant>,
}
