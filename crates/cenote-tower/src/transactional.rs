//! A transaction per request: committed before the first byte of the answer, or not at all.

use std::fmt;
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use cenote::Scope;
use cenote_sqlx::{Db, Dialect, Isolation, TransactionOptions};
use http::{Request, Response, StatusCode};
use tokio::sync::watch;
use tower_layer::Layer;
use tower_service::Service;

use crate::problem::Problem;
use crate::text::AnswerBody;
use crate::verdict::status_rolls_back;

/// Runs each request in a transaction: every `&db` in it is part of it, without being passed along.
///
/// Committed if the answer is good; rolled back by an error status ([`rolls_back_if`](Self::rolls_back_if)), an error of the service, a panic,
/// or by being dropped (a timeout, a client that hung up). The commit comes before the answer: if it fails, the client gets a 500 and nothing of
/// the body. If the rollback fails, the client gets the answer that led to it.
///
/// In a transaction of the same database that is there already it is a savepoint, which takes no options. Two of these layers, for
/// two databases, may be stacked: each commits by itself, the inner one first.
///
/// A **streaming body** is read after the commit, outside of the transaction. A row stream of the transaction that is moved into the body keeps the
/// commit waiting, which fails after `acquire_timeout`: collect such rows, or read them without this layer.
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
///         Ok::<_, sqlx::Error>(answer.body(Text::default()).expect("it is well formed"))
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
    rolls_back: Arc<dyn Fn(StatusCode) -> bool + Send + Sync>,
}

impl<DB: Dialect> TransactionalLayer<DB> {
    /// A transaction of `db` around every request.
    pub fn new(db: Db<DB>) -> Self {
        Self {
            db,
            options: TransactionOptions::new(),
            on_demand: false,
            rolls_back: Arc::new(status_rolls_back),
        }
    }

    /// Without the right to write: whatever tries is refused.
    pub fn read_only(mut self) -> Self {
        self.options = self.options.read_only();
        self
    }

    /// With this isolation level.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.options = self.options.isolation(isolation);
        self
    }

    /// Begun only when the handler takes a [`Tx`](crate::Tx): what a request does before that is outside, and a request without one acquires nothing.
    #[cfg(feature = "axum")]
    pub fn on_demand(mut self) -> Self {
        self.on_demand = true;
        self
    }

    /// Which statuses roll back: 4xx and 5xx by default.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:?cenote.max_size=1").build()?;
    /// // An answer that says "no" may leave something behind.
    /// let layer = cenote_tower::TransactionalLayer::new(db).rolls_back_if(|status| status.is_server_error());
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

/// What [`TransactionalLayer`] makes of a service.
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
        let mut inner = mem::replace(&mut self.inner, fresh); // the one that said it is ready
        let layer = self.layer.clone();
        Box::pin(async move {
            let call = Call {
                db: layer.db.clone(),
                stage: Arc::new(watch::Sender::new(Stage::Outside)),
            };
            request.extensions_mut().insert(call.clone());
            // Lazily, so that whatever the service does in `call` is in the scope and the transaction, too.
            let handler = async move { inner.call(request).await };
            let work = conduct(&layer, &call, handler);
            match Scope::current() {
                Some(_) => work.await,
                None => cenote::scope(work).await,
            }
        })
    }
}

/// One request that passes the layer.
pub(crate) struct Call<DB: Dialect> {
    pub(crate) db: Db<DB>,
    pub(crate) stage: Arc<watch::Sender<Stage>>,
}

impl<DB: Dialect> Clone for Call<DB> {
    fn clone(&self) -> Self {
        Self {
            db: self.db.clone(),
            stage: Arc::clone(&self.stage),
        }
    }
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No transaction yet.
    Outside,
    /// The handler wants one, and waits.
    #[cfg_attr(not(feature = "axum"), expect(dead_code, reason = "an extractor asks"))]
    Asked,
    /// It has begun.
    Inside,
}

/// Why a transaction is rolled back, or was never begun.
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

/// Runs the handler: from the start in a transaction, or from the moment when it asks for one.
async fn conduct<DB, F, B, E>(
    layer: &TransactionalLayer<DB>,
    call: &Call<DB>,
    handler: F,
) -> Result<Response<AnswerBody<B>>, E>
where
    DB: Dialect,
    F: Future<Output = Result<Response<B>, E>> + Send,
    B: Send,
    E: Send,
{
    let mut handler = pin!(handler);
    if layer.on_demand {
        if let Some(done) = until_asked(call, handler.as_mut()).await {
            return done.map(|response| response.map(AnswerBody::inner));
        }
    }
    let work = move || async move {
        call.stage.send_replace(Stage::Inside);
        match handler.await {
            Ok(response) if (layer.rolls_back)(response.status()) => Err(Undo::Answer(response)),
            Ok(response) => Ok(response),
            Err(error) => Err(Undo::Service(error)),
        }
    };
    match layer.db.transaction_with(layer.options, work).await {
        Ok(response) | Err(Undo::Answer(response)) => Ok(response.map(AnswerBody::inner)),
        Err(Undo::Service(error)) => Err(error),
        Err(Undo::Sql(error)) => {
            let response = problem_of(error, *call.stage.borrow()).to_response();
            Ok(response.map(AnswerBody::own))
        }
    }
}

/// The handler's end, or nothing if it asks for a transaction. From there it can be polled on.
async fn until_asked<DB: Dialect, F: Future>(
    call: &Call<DB>,
    mut handler: Pin<&mut F>,
) -> Option<F::Output> {
    let mut stage = call.stage.subscribe();
    let mut asked = pin!(stage.wait_for(|stage| *stage != Stage::Outside));
    poll_fn(|context| match handler.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => asked.as_mut().poll(context).map(|_| None),
    })
    .await
}

/// For a transaction that could not be begun, or not be committed.
fn problem_of(error: sqlx::Error, stage: Stage) -> Problem {
    let problem = Problem::from(error);
    let told = match stage {
        Stage::Inside => "the transaction of this request was not committed",
        Stage::Outside | Stage::Asked => "the transaction of this request was not begun",
    };
    let report = format!("{told}: {}", problem.report());
    problem.with_report(report)
}
