//! The extractor: a handler that takes a `Tx` runs in a transaction, or not at all.

use std::fmt;
use std::ops::Deref;

use axum::extract::FromRequestParts;
use cenote_sqlx::{Db, Dialect};
use http::request::Parts;

use crate::problem::Problem;
use crate::transactional::{Call, Stage};

const NO_LAYER: &str = "`Tx` was taken where no `TransactionalLayer` of this kind of database is around: add `.layer(TransactionalLayer::new(db))` to the route";
const ELSEWHERE: &str = "`Tx` was taken in another task than that of its `TransactionalLayer`: put the layer inside of what spawns the handler";

/// The database, in the transaction of this request: `&*tx` is an `Executor`, and so is every other `&db` of the same database until the handler is done.
///
/// It needs a [`TransactionalLayer`](crate::TransactionalLayer) around the route, which commits and rolls back. If that was made
/// [`on_demand`](crate::TransactionalLayer::on_demand), this is where the transaction begins. Of several such layers it means the innermost of this kind of
/// database. Where there is none, the request is answered by a 500 that says so: in a debug build to the client, otherwise to the log.
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
        let Some(Call { db, stage }) = call else {
            return Err(Problem::miswired(NO_LAYER));
        };
        stage.send_if_modified(|stage| {
            let first = *stage == Stage::Outside;
            if first {
                *stage = Stage::Asked;
            }
            first
        });
        // If it cannot be begun the layer answers, and this is never polled again.
        let mut begun = stage.subscribe();
        let begun = begun
            .wait_for(|stage| *stage == Stage::Inside)
            .await
            .is_ok();
        if begun && db.in_transaction() {
            Ok(Self { db })
        } else {
            Err(Problem::miswired(ELSEWHERE))
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
