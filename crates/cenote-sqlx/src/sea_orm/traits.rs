//! SeaORM's traits, for every type that has a `Runner`.

use std::fmt::{Debug, Display};
use std::panic::Location;
use std::pin::Pin;

use sea_orm::entity::prelude::async_trait::async_trait;
use sea_orm::{
    AccessMode, ConnectionTrait, DbBackend, DbErr, ExecResult, IsolationLevel, QueryResult,
    Statement, StreamTrait, TransactionError, TransactionSession, TransactionTrait,
};

use super::{Answer, OrmDialect, OrmTransaction, Rows, Runner, begin};
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
use crate::any_db::{AnyDb, each};
use crate::db::Db;

/// Writes the traits for a type, given the expression that returns its runner. The methods that
/// begin a transaction are not `async`, so that they know the line of their caller.
macro_rules! traits {
    (impl [$($generics:tt)*] for $type:ty, |$this:ident| $runner:expr) => {
        impl<$($generics)*> $type {
            /// Returns the database in the terms of SeaORM. Two of its traits have this method, so
            /// a call would be ambiguous where both are in scope.
            pub fn get_database_backend(&self) -> DbBackend {
                let $this = self;
                ($runner).backend()
            }
        }

        #[async_trait]
        impl<$($generics)*> ConnectionTrait for $type {
            fn get_database_backend(&self) -> DbBackend {
                let $this = self;
                ($runner).backend()
            }

            async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
                let $this = self;
                ($runner).execute(statement).await
            }

            async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
                let $this = self;
                ($runner).execute_text(sql).await
            }

            async fn query_one_raw(
                &self,
                statement: Statement,
            ) -> Result<Option<QueryResult>, DbErr> {
                let $this = self;
                ($runner).query_one(statement).await
            }

            async fn query_all_raw(
                &self,
                statement: Statement,
            ) -> Result<Vec<QueryResult>, DbErr> {
                let $this = self;
                ($runner).query_all(statement).await
            }
        }

        impl<$($generics)*> StreamTrait for $type {
            type Stream<'a>
                = Rows<'a>
            where
                Self: 'a;

            fn get_database_backend(&self) -> DbBackend {
                let $this = self;
                ($runner).backend()
            }

            fn stream_raw<'a>(&'a self, statement: Statement) -> Answer<'a, Rows<'a>> {
                let $this = self;
                ($runner).stream(statement)
            }
        }

        impl<$($generics)*> TransactionTrait for $type {
            type Transaction = OrmTransaction;

            #[track_caller]
            fn begin<'s, 'f>(&'s self) -> Answer<'f, OrmTransaction>
            where
                's: 'f,
                Self: 'f,
            {
                self.begin_with_options(sea_orm::TransactionOptions::default())
            }

            #[track_caller]
            fn begin_with_config<'s, 'f>(
                &'s self,
                isolation_level: Option<IsolationLevel>,
                access_mode: Option<AccessMode>,
            ) -> Answer<'f, OrmTransaction>
            where
                's: 'f,
                Self: 'f,
            {
                self.begin_with_options(begin::config(isolation_level, access_mode))
            }

            #[track_caller]
            fn begin_with_options<'s, 'f>(
                &'s self,
                options: sea_orm::TransactionOptions,
            ) -> Answer<'f, OrmTransaction>
            where
                's: 'f,
                Self: 'f,
            {
                let $this = self;
                let runner = $runner;
                let options = begin::options(runner.backend(), options);
                runner.begin(Location::caller(), options)
            }

            #[track_caller]
            fn transaction<'s, 'f, F, T, E>(
                &'s self,
                callback: F,
            ) -> Pin<Box<dyn Future<Output = Result<T, TransactionError<E>>> + Send + 'f>>
            where
                F: for<'c> FnOnce(
                        &'c OrmTransaction,
                    ) -> Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'c>>
                    + Send
                    + 'f,
                T: Send + 'f,
                E: Display + Debug + Send + 'f,
                's: 'f,
                Self: 'f,
            {
                Box::pin(begin::run(TransactionTrait::begin(self), callback))
            }

            #[track_caller]
            fn transaction_with_config<'s, 'f, F, T, E>(
                &'s self,
                callback: F,
                isolation_level: Option<IsolationLevel>,
                access_mode: Option<AccessMode>,
            ) -> Pin<Box<dyn Future<Output = Result<T, TransactionError<E>>> + Send + 'f>>
            where
                F: for<'c> FnOnce(
                        &'c OrmTransaction,
                    ) -> Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'c>>
                    + Send
                    + 'f,
                T: Send + 'f,
                E: Display + Debug + Send + 'f,
                's: 'f,
                Self: 'f,
            {
                let begun = self.begin_with_config(isolation_level, access_mode);
                Box::pin(begin::run(begun, callback))
            }
        }
    };
}

traits!(impl [DB: OrmDialect] for Db<DB>, |db| db as &dyn Runner);
traits!(impl [] for OrmTransaction, |transaction| transaction.runner());
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
traits!(impl [] for AnyDb, |any| each!(any, db => db as &dyn Runner));

#[async_trait]
impl TransactionSession for OrmTransaction {
    async fn commit(self) -> Result<(), DbErr> {
        Self::commit(self).await
    }

    async fn rollback(self) -> Result<(), DbErr> {
        Self::rollback(self).await
    }
}
