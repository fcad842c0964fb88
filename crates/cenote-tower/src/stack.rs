//! All layers of this crate in one, in the right order.

use std::fmt;
use std::time::Duration;

use cenote_sqlx::{Db, Dialect};
use tower_layer::Layer;

use crate::problem_layer::{ProblemLayer, ProblemService};
use crate::scope::{ScopeLayer, ScopeService};
use crate::shed::{ShedLayer, ShedService};
use crate::transactional::{TransactionalLayer, TransactionalService};

/// The service that [`Stack::wrap_service`] returns.
pub type StackService<S, DB> =
    ProblemService<ShedService<ScopeService<TransactionalService<S, DB>>>>;

/// Wires the layers of this crate around the routes of a program, in the right order: problems,
/// load shedding, the scope, the transaction.
///
/// It takes the routes and returns them wrapped, so it cannot be applied to a router that has no
/// routes yet, which axum does in silence. Routes that are added afterwards, like those for health
/// checks, are outside of it.
///
/// ```
/// # #[cfg(feature = "axum")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use axum::{Router, extract::State, routing::post};
/// use cenote_sqlx::Db;
/// use cenote_tower::{Problem, Readiness, Stack, health_routes};
/// use http::{Request, StatusCode};
/// use sqlx::Sqlite;
/// use tower::ServiceExt;
///
/// async fn place(State(db): State<Db<Sqlite>>) -> Result<StatusCode, Problem> {
///     sqlx::query("INSERT INTO orders VALUES ('a chair')").execute(&db).await?;
///     Ok(StatusCode::CONFLICT) // rolls back
/// }
///
/// let db = Db::sqlite("sqlite::memory:?cenote.max_size=1").build()?;
/// sqlx::query("CREATE TABLE orders (item TEXT)").execute(&db).await?;
/// let routes = Router::new().route("/orders", post(place)).with_state(db.clone());
/// let app = Stack::new(&db)
///     .shed(Duration::from_secs(5))
///     .problems(|layer| layer.on_problem(|problem| eprintln!("{}", problem.report())))
///     .wrap(routes)
///     .merge(health_routes(Readiness::new().pool(db.pool())));
///
/// let request = Request::post("/orders").body(axum::body::Body::empty())?;
/// assert_eq!(app.oneshot(request).await?.status(), 409);
/// let orders: i64 = sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(&db).await?;
/// assert_eq!(orders, 0);
/// # Ok(()) }
/// # #[cfg(not(feature = "axum"))] fn main() {}
/// ```
#[must_use = "a stack does nothing until it wraps routes"]
pub struct Stack<DB: Dialect> {
    problems: ProblemLayer,
    shed: ShedLayer,
    scope: ScopeLayer,
    transaction: TransactionalLayer<DB>,
}

impl<DB: Dialect> Stack<DB> {
    /// Runs every request in a transaction of `db`, which begins with its first statement, and
    /// refuses no request. The methods below change that.
    ///
    /// Where most requests only read, let the transactions be
    /// [`on_demand`](TransactionalLayer::on_demand): a transaction costs two round trips, and on
    /// SQLite a place in the queue of writers.
    pub fn new(db: &Db<DB>) -> Self {
        Self {
            problems: ProblemLayer::new().pool(db.pool()),
            shed: ShedLayer::new(db.pool(), Duration::MAX),
            scope: ScopeLayer::new(),
            transaction: TransactionalLayer::new(db.clone()),
        }
    }

    /// Refuses requests that would wait for a connection longer than `patience`.
    pub fn shed(mut self, patience: Duration) -> Self {
        self.shed = self.shed.patience(patience);
        self
    }

    /// Changes the layer of problems: where reports go, and what becomes of errors.
    pub fn problems(mut self, change: impl FnOnce(ProblemLayer) -> ProblemLayer) -> Self {
        self.problems = change(self.problems);
        self
    }

    /// Changes the layer of scopes: one connection for the whole request.
    pub fn scope(mut self, change: impl FnOnce(ScopeLayer) -> ScopeLayer) -> Self {
        self.scope = change(self.scope);
        self
    }

    /// Changes the layer of transactions: only for requests that take a `Tx`, read-only, or rolled
    /// back by other statuses.
    pub fn transactions(
        mut self,
        change: impl FnOnce(TransactionalLayer<DB>) -> TransactionalLayer<DB>,
    ) -> Self {
        self.transaction = change(self.transaction);
        self
    }

    /// Wraps all routes of a router.
    #[cfg(feature = "axum")]
    pub fn wrap<S: Clone + Send + Sync + 'static>(
        self,
        routes: axum::Router<S>,
    ) -> axum::Router<S> {
        let shed = self.shed.all_write(self.transaction.always_writes());
        let layers = (self.problems, shed, self.scope, self.transaction);
        routes.layer(layers)
    }

    /// Wraps a service that is not a router of axum.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:").max_size(1).build()?;
    /// use cenote_tower::{Stack, Text};
    /// use http::{Request, Response};
    /// use tower::{ServiceExt, service_fn};
    ///
    /// let service = Stack::new(&db).wrap_service(service_fn(async |_: Request<()>| {
    ///     Ok::<_, sqlx::Error>(Response::new(Text::default()))
    /// }));
    /// assert_eq!(service.oneshot(Request::new(())).await?.status(), 200);
    /// # Ok(()) }
    /// ```
    pub fn wrap_service<S>(self, service: S) -> StackService<S, DB> {
        let shed = self.shed.all_write(self.transaction.always_writes());
        let service = self.scope.layer(self.transaction.layer(service));
        self.problems.layer(shed.layer(service))
    }
}

impl<DB: Dialect> fmt::Debug for Stack<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack")
            .field("problems", &self.problems)
            .field("shed", &self.shed)
            .field("scope", &self.scope)
            .field("transaction", &self.transaction)
            .finish()
    }
}
