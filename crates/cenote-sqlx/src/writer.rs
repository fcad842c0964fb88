//! The right to write, for a database that has room for one writer: a pool of one, so that writers stand in line and errors name who holds it.

use cenote::Manager;

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
