//! Statements: prepared ones with their meaning, and what the functions of a session accept.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use tokio_postgres::types::Type;

use crate::meaning::Meaning;

/// A prepared statement. It works on the connection that prepared it.
///
/// It dereferences to [`tokio_postgres::Statement`], which tells its parameters and columns.
#[derive(Clone)]
pub struct Statement(Arc<Prepared>);

pub(crate) struct Prepared {
    pub(crate) statement: tokio_postgres::Statement,
    pub(crate) sql: Box<str>,
    pub(crate) types: Box<[Type]>,
    pub(crate) meaning: Meaning,
    /// Whether it may be prepared again when the server has forgotten it.
    pub(crate) cached: bool,
}

impl Statement {
    pub(crate) fn new(prepared: Prepared) -> Self {
        Self(Arc::new(prepared))
    }

    pub(crate) fn prepared(&self) -> &Prepared {
        &self.0
    }
}

impl Deref for Statement {
    type Target = tokio_postgres::Statement;

    fn deref(&self) -> &tokio_postgres::Statement {
        &self.0.statement
    }
}

impl fmt::Debug for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Statement").field(&self.0.sql).finish()
    }
}

/// What can be run: a text, or a prepared statement. A `tokio_postgres::Statement` can be run, too,
/// but its text is not known, so the session is reset afterwards.
pub trait ToStatement: Sealed + Sync {}

impl<T: Sealed + Sync + ?Sized> ToStatement for T {}

/// What a [`ToStatement`] is.
#[derive(Clone, Copy, Debug)]
pub enum Parts<'a> {
    Text(&'a str),
    Ours(&'a Statement),
    Foreign(&'a tokio_postgres::Statement),
}

pub trait Sealed {
    fn parts(&self) -> Parts<'_>;
}

impl Sealed for str {
    fn parts(&self) -> Parts<'_> {
        Parts::Text(self)
    }
}

impl Sealed for String {
    fn parts(&self) -> Parts<'_> {
        Parts::Text(self)
    }
}

impl Sealed for Statement {
    fn parts(&self) -> Parts<'_> {
        Parts::Ours(self)
    }
}

impl Sealed for tokio_postgres::Statement {
    fn parts(&self) -> Parts<'_> {
        Parts::Foreign(self)
    }
}
