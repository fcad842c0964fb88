//! The parts of a query, so that its text can be read before it runs.

use std::fmt;

use sqlx::{Database, Error, Execute, SqlStr};

use crate::known;
use crate::lexer::Language;
use crate::reading::Reading;

/// An owned `Execute`.
#[doc(hidden)]
pub struct Command<DB: Database> {
    sql: SqlStr,
    statement: Option<DB::Statement>,
    arguments: Option<DB::Arguments>,
    persistent: bool,
    reading: Reading,
}

impl<DB: Database> Command<DB> {
    pub(crate) fn new<'q>(
        mut query: impl Execute<'q, DB>,
        language: Language,
    ) -> Result<Self, Error> {
        let statement = query.statement().cloned();
        let arguments = query.take_arguments().map_err(Error::Encode)?;
        let (persistent, sql) = (query.persistent(), query.sql());
        Ok(Self {
            reading: known::reading(language, sql.as_str()),
            sql,
            statement,
            arguments,
            persistent,
        })
    }

    /// Returns what the text says.
    pub(crate) fn reading(&self) -> Reading {
        self.reading
    }

    /// Returns whether the command is prepared and returns rows. Only the plan of such a command
    /// can become stale.
    pub(crate) fn can_be_stale(&self) -> bool {
        self.arguments.is_some() && self.reading.returns
    }

    /// Makes sure that the statement does not stay prepared. Returns whether it is prepared at all.
    pub(crate) fn leave_nothing_prepared(&mut self) -> bool {
        self.persistent = false;
        self.arguments.is_some()
    }

    /// Returns a copy for a second try.
    pub(crate) fn copy(&self) -> Self
    where
        DB::Arguments: Clone,
    {
        Self {
            sql: self.sql.clone(),
            statement: self.statement.clone(),
            arguments: self.arguments.clone(),
            persistent: self.persistent,
            reading: self.reading,
        }
    }

    pub(crate) fn text(&self) -> &str {
        self.sql.as_str()
    }
}

impl<DB: Database> Execute<'_, DB> for Command<DB> {
    fn sql(self) -> SqlStr {
        self.sql
    }

    fn statement(&self) -> Option<&DB::Statement> {
        self.statement.as_ref()
    }

    fn take_arguments(&mut self) -> Result<Option<DB::Arguments>, sqlx::error::BoxDynError> {
        Ok(self.arguments.take())
    }

    fn persistent(&self) -> bool {
        self.persistent
    }
}

impl<DB: Database> fmt::Debug for Command<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("sql", &self.text())
            .finish_non_exhaustive()
    }
}
