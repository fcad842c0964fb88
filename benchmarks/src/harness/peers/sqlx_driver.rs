//! The smallest database driver that sqlx accepts. Connections open and answer a ping. Rows, values
//! and statements cannot exist.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use log::LevelFilter;
use sqlx_core::arguments::Arguments;
use sqlx_core::column::{Column, ColumnIndex};
use sqlx_core::connection::{ConnectOptions, Connection};
use sqlx_core::database::Database;
use sqlx_core::encode::Encode;
use sqlx_core::error::BoxDynError;
use sqlx_core::row::Row;
use sqlx_core::sql_str::SqlStr;
use sqlx_core::statement::Statement;
use sqlx_core::transaction::{Transaction, TransactionManager};
use sqlx_core::type_info::TypeInfo;
use sqlx_core::types::Type;
use sqlx_core::value::{Value, ValueRef};
use sqlx_core::{Either, Error, Url};

use crate::harness::backend::{Backend, Thing};

/// The database, as a type.
#[derive(Debug)]
pub(super) struct Driver;

/// Where to connect.
#[derive(Clone, Debug)]
pub(super) struct Options(pub(super) Backend);

/// A connection is a thing.
#[derive(Debug)]
pub(super) struct Line(#[expect(dead_code, reason = "it is counted as long as it is kept")] Thing);

/// Stands for everything that needs a query. It has no values.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Never {}

/// The arguments of a query, which cannot exist.
#[derive(Debug, Default)]
pub(super) struct NoArguments;

impl Database for Driver {
    type Connection = Line;
    type TransactionManager = NoTransactions;
    type Row = Never;
    type QueryResult = NoResult;
    type Column = Never;
    type TypeInfo = Never;
    type Value = Never;
    type ValueRef<'r> = Never;
    type Arguments = NoArguments;
    type ArgumentBuffer = ();
    type Statement = Never;
    const NAME: &'static str = "things";
    const URL_SCHEMES: &'static [&'static str] = &["things"];
}

impl ConnectOptions for Options {
    type Connection = Line;

    fn from_url(_: &Url) -> Result<Self, Error> {
        Ok(Self(Backend::default()))
    }

    async fn connect(&self) -> Result<Line, Error> {
        Ok(Line(self.0.connect().await))
    }

    fn log_statements(self, _: LevelFilter) -> Self {
        self
    }

    fn log_slow_statements(self, _: LevelFilter, _: Duration) -> Self {
        self
    }
}

impl FromStr for Options {
    type Err = Error;

    fn from_str(_: &str) -> Result<Self, Error> {
        Ok(Self(Backend::default()))
    }
}

impl Connection for Line {
    type Database = Driver;
    type Options = Options;

    async fn close(self) -> Result<(), Error> {
        Ok(())
    }

    async fn close_hard(self) -> Result<(), Error> {
        Ok(())
    }

    async fn ping(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn begin(
        &mut self,
    ) -> impl Future<Output = Result<Transaction<'_, Driver>, Error>> + Send + '_ {
        Transaction::begin(self, None)
    }

    fn shrink_buffers(&mut self) {}

    async fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn should_flush(&self) -> bool {
        false
    }
}

/// Transactions have nothing to commit.
#[derive(Debug)]
pub(super) struct NoTransactions;

impl TransactionManager for NoTransactions {
    type Database = Driver;

    async fn begin(_: &mut Line, _: Option<SqlStr>) -> Result<(), Error> {
        Ok(())
    }

    async fn commit(_: &mut Line) -> Result<(), Error> {
        Ok(())
    }

    async fn rollback(_: &mut Line) -> Result<(), Error> {
        Ok(())
    }

    fn start_rollback(_: &mut Line) {}

    fn get_transaction_depth(_: &Line) -> usize {
        0
    }
}

/// The result of a query, which cannot exist.
#[derive(Debug, Default)]
pub(super) struct NoResult;

impl Extend<Self> for NoResult {
    fn extend<I: IntoIterator<Item = Self>>(&mut self, _: I) {}
}

impl Arguments for NoArguments {
    type Database = Driver;

    fn reserve(&mut self, _: usize, _: usize) {}

    fn add<'t, T: Encode<'t, Driver> + Type<Driver>>(&mut self, _: T) -> Result<(), BoxDynError> {
        Ok(())
    }

    fn len(&self) -> usize {
        0
    }
}

impl Row for Never {
    type Database = Driver;

    fn columns(&self) -> &[Never] {
        match *self {}
    }

    fn try_get_raw<I: ColumnIndex<Self>>(&self, _: I) -> Result<Never, Error> {
        match *self {}
    }
}

impl Column for Never {
    type Database = Driver;

    fn ordinal(&self) -> usize {
        match *self {}
    }

    fn name(&self) -> &str {
        match *self {}
    }

    fn type_info(&self) -> &Never {
        match *self {}
    }
}

impl fmt::Display for Never {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl TypeInfo for Never {
    fn is_null(&self) -> bool {
        match *self {}
    }

    fn name(&self) -> &str {
        match *self {}
    }
}

impl Value for Never {
    type Database = Driver;

    fn as_ref(&self) -> Never {
        match *self {}
    }

    fn type_info(&self) -> Cow<'_, Never> {
        match *self {}
    }

    fn is_null(&self) -> bool {
        match *self {}
    }
}

impl ValueRef<'_> for Never {
    type Database = Driver;

    fn to_owned(&self) -> Never {
        match *self {}
    }

    fn type_info(&self) -> Cow<'_, Never> {
        match *self {}
    }

    fn is_null(&self) -> bool {
        match *self {}
    }
}

impl Statement for Never {
    type Database = Driver;

    fn into_sql(self) -> SqlStr {
        match self {}
    }

    fn sql(&self) -> &SqlStr {
        match *self {}
    }

    fn parameters(&self) -> Option<Either<&[Never], usize>> {
        match *self {}
    }

    fn columns(&self) -> &[Never] {
        match *self {}
    }

    sqlx_core::impl_statement_query!(NoArguments);
}
