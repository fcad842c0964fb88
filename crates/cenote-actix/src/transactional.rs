//! A transaction per request, decided by the status of the response.

use std::fmt;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::http::StatusCode;
use actix_web::{Error, HttpRequest};
use cenote::scope::Scope;
use cenote_sqlx::{Db, Dialect, TransactionOptions};

use crate::label::label;
use crate::problem::Problem;

/// Middleware that runs each request in a transaction of a database. Every `&db` of the same
/// database in there is part of it. The transaction begins with the first statement.
///
/// It is committed if the status is below 400. It is rolled back by a status of 4xx or 5xx
/// ([`rolls_back_if`](Transactional::rolls_back_if)), an error, a panic or a drop (a timeout, a
/// client that disconnects). The commit comes before the response: if it fails, the client gets a
/// 500, or a 503 after a conflict with another transaction, and nothing of the body. If a rollback
/// fails, the client gets the response that led to it.
///
/// Inside a transaction of the same database it is a savepoint, which takes no options. A handler
/// that must not run without it calls [`require_transaction`](Db::require_transaction).
///
/// A **streaming body** is read after the commit, outside of the transaction. If a row stream of
/// the transaction is moved into the body, the commit waits for it and fails after
/// `acquire_timeout`. Collect such rows, or read them on a route without this middleware.
///
/// ```
/// use actix_web::{App, HttpResponse, http::StatusCode, test, web};
/// use cenote_actix::{Problem, Transactional};
/// use cenote_sqlx::Db;
/// use sqlx::Sqlite;
///
/// async fn order(
///     db: web::Data<Db<Sqlite>>,
///     status: web::Path<u16>,
/// ) -> Result<HttpResponse, Problem> {
///     sqlx::query("INSERT INTO orders VALUES ('a chair')").execute(&**db).await?;
///     Ok(HttpResponse::build(StatusCode::from_u16(*status).expect("a status")).finish())
/// }
///
/// # #[actix_web::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = Db::sqlite("sqlite::memory:").max_size(1).build()?;
/// sqlx::query("CREATE TABLE orders (item TEXT)").execute(&db).await?;
/// let app = App::new()
///     .app_data(web::Data::new(db.clone()))
///     .wrap(Transactional::new(db.clone()))
///     .route("/order/{status}", web::post().to(order));
/// let app = test::init_service(app).await;
/// for uri in ["/order/201", "/order/409"] {
///     test::call_service(&app, test::TestRequest::post().uri(uri).to_request()).await;
/// }
/// let orders: i64 = sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(&db).await?;
/// assert_eq!(orders, 1);
/// # Ok(()) }
/// ```
pub struct Transactional<DB: Dialect> {
    db: Db<DB>,
    options: TransactionOptions,
    rolls_back: Arc<dyn Fn(StatusCode) -> bool + Send + Sync>,
}

impl<DB: Dialect> Transactional<DB> {
    /// Runs every request in a transaction of `db`.
    pub fn new(db: Db<DB>) -> Self {
        Self {
            db,
            options: TransactionOptions::new(),
            rolls_back: Arc::new(|status| status.is_client_error() || status.is_server_error()),
        }
    }

    /// Sets the options of the transactions: read-only, the isolation level.
    ///
    /// ```
    /// # use cenote_actix::Transactional;
    /// use cenote_sqlx::{Db, TransactionOptions};
    ///
    /// let db = Db::sqlite("sqlite::memory:").max_size(1).build()?;
    /// let reads = Transactional::new(db).options(TransactionOptions::new().read_only());
    /// assert!(format!("{reads:?}").contains("read_only: true"));
    /// # Ok::<_, cenote_sqlx::BuildError>(())
    /// ```
    pub fn options(mut self, options: TransactionOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets which statuses roll back. Default: 4xx and 5xx.
    ///
    /// ```
    /// # use cenote_actix::Transactional;
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:").max_size(1).build()?;
    /// // A 404 commits.
    /// let _middleware = Transactional::new(db).rolls_back_if(|status| status.is_server_error());
    /// # Ok::<_, cenote_sqlx::BuildError>(())
    /// ```
    pub fn rolls_back_if(
        mut self,
        judge: impl Fn(StatusCode) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.rolls_back = Arc::new(judge);
        self
    }
}

impl<DB: Dialect> Clone for Transactional<DB> {
    fn clone(&self) -> Self {
        Self {
            db: self.db.clone(),
            rolls_back: Arc::clone(&self.rolls_back),
            ..*self
        }
    }
}

impl<DB: Dialect> fmt::Debug for Transactional<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transactional")
            .field("db", &self.db)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<S, B, DB> Transform<S, ServiceRequest> for Transactional<DB>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    B: MessageBody + 'static,
    DB: Dialect,
{
    type Response = ServiceResponse<EitherBody<B>>;
    type Error = Error;
    type Transform = TransactionalService<S, DB>;
    type InitError = ();
    type Future = Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, inner: S) -> Self::Future {
        let (inner, middleware) = (Rc::new(inner), self.clone());
        ready(Ok(TransactionalService { inner, middleware }))
    }
}

/// The service of [`Transactional`].
///
/// # Cancel safety
/// Dropping its future drops the future of the inner service and rolls back. If it is dropped
/// during the commit, the transaction may be committed or rolled back.
#[derive(Debug)]
pub struct TransactionalService<S, DB: Dialect> {
    inner: Rc<S>,
    middleware: Transactional<DB>,
}

impl<S, B, DB> Service<ServiceRequest> for TransactionalService<S, DB>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    B: MessageBody + 'static,
    DB: Dialect,
{
    type Response = ServiceResponse<EitherBody<B>>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>>>>;

    fn poll_ready(&self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&self, request: ServiceRequest) -> Self::Future {
        let (inner, middleware) = (Rc::clone(&self.inner), self.middleware.clone());
        Box::pin(async move {
            let label = label(&request);
            // Lazily, so that the `call` of the service runs in the scope and in the transaction.
            let work = conduct(&middleware, async { inner.call(request).await });
            match Scope::current().filter(|scope| scope.label().is_some()) {
                Some(_) => work.await,
                None => Scope::nested().labelled(label).run_and_end(work).await,
            }
        })
    }
}

/// Why a transaction is not committed.
enum Undo<B> {
    Answer(ServiceResponse<B>),
    Service(Error),
    Sql(sqlx::Error),
}

impl<B> From<sqlx::Error> for Undo<B> {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

/// Runs the handler in a transaction, which begins with its first statement.
async fn conduct<DB: Dialect, B: MessageBody + 'static>(
    middleware: &Transactional<DB>,
    handler: impl Future<Output = Result<ServiceResponse<B>, Error>>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    // Not before the handler is done: actix-web needs the only handle to a request that it routes.
    let mut asked: Option<HttpRequest> = None;
    let work = async || {
        let response = handler.await.map_err(Undo::Service)?;
        asked = Some(response.request().clone());
        match (middleware.rolls_back)(response.status()) {
            true => Err(Undo::Answer(response)),
            false => Ok(response),
        }
    };
    let transaction = middleware
        .db
        .lazy_transaction(middleware.options.refuse_late());
    let error = match transaction.run(work).await {
        Ok(response) | Err(Undo::Answer(response)) => return Ok(response.map_into_left_body()),
        Err(Undo::Service(error)) => return Err(error),
        Err(Undo::Sql(error)) => error,
    };
    let problem = Problem::from(cenote_tower::Problem::uncommitted(error));
    match asked {
        Some(request) => Ok(ServiceResponse::from_err(problem, request).map_into_right_body()),
        None => Err(problem.into()),
    }
}
