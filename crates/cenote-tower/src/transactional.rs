//! A transaction per request. It is committed before the response is sent.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use cenote::scope::Scope;
use cenote_sqlx::{Db, Dialect, Isolation, TransactionOptions};
use http::{Request, Response, StatusCode};
use tower_layer::Layer;
use tower_service::Service;

use crate::asked::Asked;
use crate::problem::Problem;
use crate::text::AnswerBody;
use crate::verdict::status_rolls_back;

/// Runs each request in a transaction. Every `&db` of this database in the request is part of it.
///
/// The transaction begins with the first statement, so a request that reads a slow upload holds no
/// connection, and a request without a statement needs none. It is committed after a success. It is
/// rolled back after an error status ([`rolls_back_if`](Self::rolls_back_if)), an error of the
/// service, a panic or a drop (a timeout, a client that disconnects). The commit comes before the
/// response: if it fails, the client gets a 500, or a 503 after a conflict with another
/// transaction, and nothing of the body. If a rollback fails, the client gets the response that led
/// to it.
///
/// A handler that is not under this layer, or is spawned by a layer inside of it, runs without a
/// transaction and does not notice. Let it take a [`Tx`](crate::Tx), or call
/// [`require_transaction`](Db::require_transaction).
///
/// Inside a transaction of the same database it is a savepoint, which takes no options. Two of
/// these layers, for two databases, can be stacked: each commits by itself, the inner one first.
///
/// A **streaming body** is read after the commit, outside of the transaction. If a row stream of
/// the transaction is moved into the body, the commit waits for it and fails after
/// `acquire_timeout`. Collect such rows, or read them on a route without this layer.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_sqlx::Db;
/// use cenote_tower::{Text, TransactionalLayer};
/// use http::{Request, Response, StatusCode};
/// use tower::{Layer, ServiceExt, service_fn};
///
/// let db = Db::sqlite("sqlite::memory:?cenote.max_size=1").build()?;
/// sqlx::query("CREATE TABLE t (a INTEGER)").execute(&db).await?;
/// let layer = TransactionalLayer::new(db.clone());
/// let at_work = db.clone();
/// let service = layer.layer(service_fn(move |request: Request<StatusCode>| {
///     let db = at_work.clone();
///     async move {
///         sqlx::query("INSERT INTO t VALUES (1)").execute(&db).await?;
///         let answer = Response::builder().status(request.into_body());
///         Ok::<_, sqlx::Error>(answer.body(Text::default()).expect("a status and no headers"))
///     }
/// }));
/// service.clone().oneshot(Request::new(StatusCode::OK)).await?;
/// service.oneshot(Request::new(StatusCode::CONFLICT)).await?;
/// let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM t").fetch_one(&db).await?;
/// assert_eq!(rows, 1);
/// # Ok(()) }
/// ```
pub struct TransactionalLayer<DB: Dialect> {
    db: Db<DB>,
    options: TransactionOptions,
    on_demand: bool,
    allows_late: bool,
    rolls_back: Arc<dyn Fn(StatusCode) -> bool + Send + Sync>,
}

impl<DB: Dialect> TransactionalLayer<DB> {
    /// Runs every request in a transaction of `db`.
    pub fn new(db: Db<DB>) -> Self {
        Self {
            db,
            options: TransactionOptions::new(),
            on_demand: false,
            allows_late: false,
            rolls_back: Arc::new(status_rolls_back),
        }
    }

    /// Refuses statements that write.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:").max_size(1).build()?;
    /// use cenote_tower::{Text, TransactionalLayer};
    /// use http::{Request, Response};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// let at_work = db.clone();
    /// let service = service_fn(move |_: Request<()>| {
    ///     let db = at_work.clone();
    ///     async move {
    ///         sqlx::query("CREATE TABLE visits (a INTEGER)").execute(&db).await?;
    ///         Ok::<_, sqlx::Error>(Response::new(Text::default()))
    ///     }
    /// });
    /// let layer = TransactionalLayer::new(db).read_only();
    /// assert!(layer.layer(service).oneshot(Request::new(())).await.is_err());
    /// # Ok(()) }
    /// ```
    pub fn read_only(mut self) -> Self {
        self.options = self.options.read_only();
        self
    }

    /// Sets the isolation level.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.options = self.options.isolation(isolation);
        self
    }

    /// Leaves requests without a [`Tx`](crate::Tx) outside of the transaction. Where the handler
    /// takes one, the statements from there on are part of it.
    #[cfg(feature = "axum")]
    pub fn on_demand(mut self) -> Self {
        self.on_demand = true;
        self
    }

    /// Returns whether the transaction of every request may write.
    pub(crate) fn always_writes(&self) -> bool {
        !self.on_demand && !self.options.is_read_only()
    }

    /// Lets statements run by themselves after the end of the transaction, in a task that got the
    /// scope of the request and outlives it. They are committed at once. Without this they fail
    /// with an error that tells so.
    pub fn allow_late(mut self) -> Self {
        self.allows_late = true;
        self
    }

    /// Sets which statuses roll back. Default: 4xx and 5xx.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:").max_size(1).build()?;
    /// use cenote_sqlx::Isolation;
    /// use cenote_tower::{Text, TransactionalLayer};
    /// use http::{Request, Response, StatusCode};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// // A 404 commits, because the layer rolls back for 5xx only.
    /// let layer = TransactionalLayer::new(db.clone())
    ///     .isolation(Isolation::Serializable)
    ///     .rolls_back_if(|status| status.is_server_error());
    /// let at_work = db.clone();
    /// let service = layer.layer(service_fn(move |_: Request<()>| {
    ///     let db = at_work.clone();
    ///     async move {
    ///         sqlx::query("CREATE TABLE visits (a INTEGER)").execute(&db).await?;
    ///         let mut response = Response::new(Text::default());
    ///         *response.status_mut() = StatusCode::NOT_FOUND;
    ///         Ok::<_, sqlx::Error>(response)
    ///     }
    /// }));
    /// service.oneshot(Request::new(())).await?;
    /// assert!(sqlx::query("SELECT a FROM visits").execute(&db).await.is_ok());
    /// # Ok(()) }
    /// ```
    pub fn rolls_back_if(
        mut self,
        judge: impl Fn(StatusCode) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.rolls_back = Arc::new(judge);
        self
    }
}

impl<DB: Dialect> Clone for TransactionalLayer<DB> {
    fn clone(&self) -> Self {
        Self {
            db: self.db.clone(),
            rolls_back: Arc::clone(&self.rolls_back),
            ..*self
        }
    }
}

impl<DB: Dialect> fmt::Debug for TransactionalLayer<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionalLayer")
            .field("db", &self.db)
            .field("options", &self.options)
            .field("on_demand", &self.on_demand)
            .finish_non_exhaustive()
    }
}

impl<S, DB: Dialect> Layer<S> for TransactionalLayer<DB> {
    type Service = TransactionalService<S, DB>;

    fn layer(&self, inner: S) -> TransactionalService<S, DB> {
        let layer = self.clone();
        TransactionalService { inner, layer }
    }
}

/// The service of [`TransactionalLayer`].
///
/// # Cancel safety
/// Dropping its future drops the future of the inner service and rolls back. If it is dropped
/// during the commit, the transaction may be committed or rolled back.
#[derive(Debug)]
pub struct TransactionalService<S, DB: Dialect> {
    inner: S,
    layer: TransactionalLayer<DB>,
}

impl<S: Clone, DB: Dialect> Clone for TransactionalService<S, DB> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            layer: self.layer.clone(),
        }
    }
}

impl<S, R, B, DB> Service<Request<R>> for TransactionalService<S, DB>
where
    S: Service<Request<R>, Response = Response<B>, Future: Send, Error: Send>
        + Clone
        + Send
        + 'static,
    R: Send + 'static,
    B: Send + 'static,
    DB: Dialect,
{
    type Response = Response<AnswerBody<B>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<R>) -> Self::Future {
        let fresh = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, fresh); // the one that returned ready
        let layer = self.layer.clone();
        Box::pin(async move {
            let label = Asked::of(&request).to_string();
            request.extensions_mut().insert(Call(layer.db.clone()));
            // Lazily, so that the `call` of the service runs in the scope and in the transaction.
            let handler = async move { inner.call(request).await };
            let work = conduct(&layer, handler);
            match Scope::current().filter(|scope| scope.label().is_some()) {
                Some(_) => work.await,
                None => Scope::nested().labelled(label).run_and_end(work).await,
            }
        })
    }
}

/// The database of the layer, among the extensions of a request.
pub(crate) struct Call<DB: Dialect>(pub(crate) Db<DB>);

impl<DB: Dialect> Clone for Call<DB> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Why a transaction is not committed.
enum Undo<R, E> {
    Answer(R),
    Service(E),
    Sql(sqlx::Error),
}

impl<R, E> From<sqlx::Error> for Undo<R, E> {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

/// Runs the handler in a transaction, which begins with its first statement.
async fn conduct<DB, F, B, E>(
    layer: &TransactionalLayer<DB>,
    handler: F,
) -> Result<Response<AnswerBody<B>>, E>
where
    DB: Dialect,
    F: Future<Output = Result<Response<B>, E>> + Send,
    B: Send,
    E: Send,
{
    let options = match layer.allows_late {
        true => layer.options,
        false => layer.options.refuse_late(),
    };
    let transaction = layer.db.lazy_transaction(options);
    let transaction = match layer.on_demand {
        true => transaction.on_demand(),
        false => transaction,
    };
    let work = move || async move {
        match handler.await {
            Ok(response) if (layer.rolls_back)(response.status()) => Err(Undo::Answer(response)),
            Ok(response) => Ok(response),
            Err(error) => Err(Undo::Service(error)),
        }
    };
    match transaction.run(work).await {
        Ok(response) | Err(Undo::Answer(response)) => Ok(response.map(AnswerBody::inner)),
        Err(Undo::Service(error)) => Err(error),
        Err(Undo::Sql(error)) => {
            let response = Problem::uncommitted(error).to_response();
            Ok(response.map(AnswerBody::own))
        }
    }
}
