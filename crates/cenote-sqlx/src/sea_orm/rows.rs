//! A row stream of sqlx as one of SeaORM.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_core::stream::BoxStream;
use sea_orm::{DbErr, QueryResult};
use sqlx::{Database, Error};

use super::{OrmDialect, Rows, error};

type Found<'a, DB> = BoxStream<'a, Result<<DB as Database>::Row, Error>>;

/// Waits for the first row. So the connection is held, and an error of the acquire or of the query
/// is known, before the stream is returned.
pub(super) async fn begin<DB: OrmDialect>(mut found: Found<'_, DB>) -> Result<Rows<'_>, DbErr> {
    let first = poll_fn(|context| found.as_mut().poll_next(context)).await;
    let first = first.transpose().map_err(error::of_query)?;
    let rest = first.is_some().then_some(found);
    Ok(Box::pin(Begun::<DB> { first, rest }))
}

struct Begun<'a, DB: OrmDialect> {
    first: Option<DB::Row>,
    /// Dropped after its last row, so that the connection is given back at once.
    rest: Option<Found<'a, DB>>,
}

impl<DB: OrmDialect> Stream for Begun<'_, DB> {
    type Item = Result<QueryResult, DbErr>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<QueryResult, DbErr>>> {
        if let Some(row) = self.first.take() {
            return Poll::Ready(Some(Ok(row.into())));
        }
        let Some(rest) = &mut self.rest else {
            return Poll::Ready(None);
        };
        let Poll::Ready(next) = rest.as_mut().poll_next(context) else {
            return Poll::Pending;
        };
        if !matches!(next, Some(Ok(_))) {
            self.rest = None;
        }
        Poll::Ready(next.map(|row| row.map(Into::into).map_err(error::of_query)))
    }
}
