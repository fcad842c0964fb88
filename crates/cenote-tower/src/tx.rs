//! The extractor `Tx`: a handler that takes one runs in a transaction.

use std::fmt;
use std::ops::Deref;

use axum::extract::FromRequestParts;
use cenote_sqlx::{Db, Dialect};
use http::request::Parts;

use crate::problem::Problem;
use crate::transactional::Call;

const NO_LAYER: &str = "`Tx` needs a `TransactionalLayer` of the same kind of database: add \
                        `.layer(TransactionalLayer::new(db))` to the route";
const ELSEWHERE: &str = "`Tx` was taken in another task than its `TransactionalLayer`: put that layer \
                         inside of the layer that spawns the handler";

/// The database, in the transaction of this request. `&*tx` is an `Executor`; every other `&db` of
/// the same database is part of the transaction too.
///
/// The route needs a [`TransactionalLayer`](crate::TransactionalLayer), which commits and rolls
/// back. The transaction begins with the first statement after the extractor, so that a slow upload
/// holds no connection. Of several such layers the innermost one of this kind of database counts.
/// Without one the response is a 500. Its report names the missing layer; in a debug build the
/// client sees it too.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use axum::{Router, routing::post};
/// use cenote_sqlx::Db;
/// use cenote_tower::{Problem, TransactionalLayer, Tx};
/// use http::Request;
/// use tower::ServiceExt;
///
/// async fn place(tx: Tx<sqlx::Sqlite>) -> Result<&'static str, Problem> {
///     sqlx::query("INSERT INTO orders VALUES ('a chair')").execute(&*tx).await?;
///     Ok("placed")
/// }
///
/// let db = Db::sqlite("sqlite::memory:?cenote.max_size=1").build()?;
/// sqlx::query("CREATE TABLE orders (item TEXT)").execute(&db).await?;
/// let app: Router = Router::new().route("/orders", post(place)).layer(TransactionalLayer::new(db.clone()).on_demand());
///
/// let response = app.oneshot(Request::post("/orders").body(axum::body::Body::empty())?).await?;
/// assert_eq!(response.status(), 200);
/// let orders: i64 = sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(&db).await?;
/// assert_eq!(orders, 1);
/// # Ok(()) }
/// ```
pub struct Tx<DB: Dialect> {
    db: Db<DB>,
}

impl<DB: Dialect, S: Sync> FromRequestParts<S> for Tx<DB> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let call = parts.extensions.get::<Call<DB>>().cloned();
        let Some(Call(db)) = call else {
            return Err(Problem::miswired(NO_LAYER));
        };
        match db.demand_transaction() {
            true => Ok(Self { db }),
            false => Err(Problem::miswired(ELSEWHERE)),
        }
    }
}

impl<DB: Dialect> Deref for Tx<DB> {
    type Target = Db<DB>;

    fn deref(&self) -> &Db<DB> {
        &self.db
    }
}

impl<DB: Dialect> fmt::Debug for Tx<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tx").field(&self.db).finish()
    }
}
