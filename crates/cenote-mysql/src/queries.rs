//! The statements of a session: the driver's trait, with a look at the session before each.

use std::future::Future;
use std::pin::Pin;

use mysql_async::prelude::{AsQuery, Queryable, StatementLike};
use mysql_async::{BinaryProtocol, Params, QueryResult, Result, Statement, TextProtocol};

use crate::session::Session;
use crate::transaction::Transaction;

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// The functions with other names than these are built from them.
///
/// # Cancel safety
/// If a future is dropped before the server has answered, the session refuses further statements,
/// and its connection is closed when it goes back. Rows that were not read are skipped.
impl Queryable for Session {
    fn ping(&mut self) -> Answer<'_, ()> {
        Box::pin(async move {
            self.make_ready().await?;
            self.sent();
            self.conn.ping().await
        })
    }

    fn query_iter<'a, Q>(
        &'a mut self,
        query: Q,
    ) -> Answer<'a, QueryResult<'a, 'static, TextProtocol>>
    where
        Q: AsQuery + 'a,
    {
        Box::pin(async move {
            self.make_ready().await?;
            self.sent();
            self.conn.query_iter(query).await
        })
    }

    fn prep<'a, Q>(&'a mut self, query: Q) -> Answer<'a, Statement>
    where
        Q: AsQuery + 'a,
    {
        Box::pin(async move {
            self.make_ready().await?;
            self.sent_without_status();
            self.conn.prep(query).await
        })
    }

    fn close(&mut self, statement: Statement) -> Answer<'_, ()> {
        Box::pin(async move {
            self.make_ready().await?;
            self.sent_without_status();
            self.conn.close(statement).await
        })
    }

    fn exec_iter<'a: 's, 's, Q, P>(
        &'a mut self,
        statement: Q,
        params: P,
    ) -> Answer<'s, QueryResult<'a, 'static, BinaryProtocol>>
    where
        Q: StatementLike + 's,
        P: Into<Params>,
    {
        let params = params.into();
        Box::pin(async move {
            self.make_ready().await?;
            self.sent();
            self.conn.exec_iter(statement, params).await
        })
    }

    fn exec_batch<'a: 'b, 'b, S, P, I>(&'a mut self, statement: S, params: I) -> Answer<'b, ()>
    where
        S: StatementLike + 'b,
        I: IntoIterator<Item = P> + Send + 'b,
        I::IntoIter: Send,
        P: Into<Params> + Send,
    {
        Box::pin(async move {
            self.make_ready().await?;
            self.sent();
            self.conn.exec_batch(statement, params).await
        })
    }
}

/// As of its [`Session`].
impl Queryable for Transaction<'_> {
    fn ping(&mut self) -> Answer<'_, ()> {
        (**self).ping()
    }

    fn query_iter<'a, Q>(
        &'a mut self,
        query: Q,
    ) -> Answer<'a, QueryResult<'a, 'static, TextProtocol>>
    where
        Q: AsQuery + 'a,
    {
        (**self).query_iter(query)
    }

    fn prep<'a, Q>(&'a mut self, query: Q) -> Answer<'a, Statement>
    where
        Q: AsQuery + 'a,
    {
        (**self).prep(query)
    }

    fn close(&mut self, statement: Statement) -> Answer<'_, ()> {
        (**self).close(statement)
    }

    fn exec_iter<'a: 's, 's, Q, P>(
        &'a mut self,
        statement: Q,
        params: P,
    ) -> Answer<'s, QueryResult<'a, 'static, BinaryProtocol>>
    where
        Q: StatementLike + 's,
        P: Into<Params>,
    {
        (**self).exec_iter(statement, params)
    }

    fn exec_batch<'a: 'b, 'b, S, P, I>(&'a mut self, statement: S, params: I) -> Answer<'b, ()>
    where
        S: StatementLike + 'b,
        I: IntoIterator<Item = P> + Send + 'b,
        I::IntoIter: Send,
        P: Into<Params> + Send,
    {
        (**self).exec_batch(statement, params)
    }
}
