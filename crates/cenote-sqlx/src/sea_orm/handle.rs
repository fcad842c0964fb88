//! The statements and transactions of SeaORM on the handle.

use std::panic::Location;

use sea_orm::{DbBackend, ExecResult, QueryResult, Statement};

use super::transaction::{OrmTransaction, Patience};
use super::{Answer, OrmDialect, Rows, Runner};
use super::{error, execute, execute_text, query, query_all, query_one, rows};
use crate::db::Db;
use crate::transaction::TransactionOptions;

impl<DB: OrmDialect> Runner for Db<DB> {
    fn backend(&self) -> DbBackend {
        DB::BACKEND
    }

    fn execute(&self, statement: Statement) -> Answer<'_, ExecResult> {
        Box::pin(execute(self, statement))
    }

    fn execute_text<'a>(&'a self, sql: &str) -> Answer<'a, ExecResult> {
        Box::pin(execute_text(self, sql.to_owned()))
    }

    fn query_one(&self, statement: Statement) -> Answer<'_, Option<QueryResult>> {
        Box::pin(query_one(self, statement))
    }

    fn query_all(&self, statement: Statement) -> Answer<'_, Vec<QueryResult>> {
        Box::pin(query_all(self, statement))
    }

    fn stream(&self, statement: Statement) -> Answer<'_, Rows<'_>> {
        Box::pin(rows::begin::<DB>(query(statement).fetch(self)))
    }

    fn begin(
        &self,
        site: &'static Location<'static>,
        mut options: TransactionOptions,
    ) -> Answer<'_, OrmTransaction> {
        Box::pin(async move {
            if self.in_transaction() {
                // The mode of SQLite is for outermost transactions, as in SeaORM.
                options.text = None;
            }
            let begun = self.begin_at(site, options).await;
            let patience = Patience {
                pool: self.pool().name().into(),
                limit: self.limit.or(self.pool().config().acquire_timeout),
                site,
            };
            let begun = begun.map(|begun| OrmTransaction::new(begun, patience));
            begun.map_err(error::of_query)
        })
    }
}
