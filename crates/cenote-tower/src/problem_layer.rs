//! The layer that turns errors of pools into responses, and reports them.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use cenote::scope::BindError;
use cenote::{AcquireError, ClosureError};
#[cfg(feature = "sqlx")]
use http::header::CONTENT_LENGTH;
use http::header::RETRY_AFTER;
use http::{Response, StatusCode};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::problem::{Problem, RETRY_AFTER_DEFAULT, seconds};
use crate::text::AnswerBody;

/// Turns errors of a pool that has nothing to lend into a 503 with `Retry-After`, and calls a
/// function with every [`Problem`] of status 500 and above.
///
/// It sees errors of the inner service, and responses that a handler made from a [`Problem`]. With
/// the feature `sqlx` it also sees the empty responses of `#[transactional]` functions whose
/// transaction failed, and gives them a body. All other errors and responses pass unchanged.
///
/// Reports go to the function, not to a logging crate, so that the program decides where they go.
/// Without the function they are lost.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use cenote_tower::{ProblemLayer, Text};
/// use http::{Request, Response};
/// use tower::{Layer, ServiceExt, service_fn};
///
/// let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(())).build()?;
/// pool.breaker().trip();
/// let layer = ProblemLayer::new()
///     .retry_after(Duration::from_secs(30))
///     .on_problem(|problem| eprintln!("{}", problem.report()));
/// let service = layer.layer(service_fn(|_: Request<()>| async {
///     pool.acquire().await?;
///     Ok::<_, cenote::AcquireError<_>>(Response::new(Text::from(String::from("served"))))
/// }));
/// let response = service.oneshot(Request::new(())).await?;
/// assert_eq!(response.status(), 503);
/// assert_eq!(response.headers()["retry-after"], "30");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ProblemLayer {
    retry_after: Duration,
    known: Vec<Recognise>,
    on_problem: Option<Arc<OnProblem>>,
}

type OnProblem = dyn Fn(&Problem) + Send + Sync;
type Recognise = fn(&(dyn Error + 'static)) -> Option<Problem>;

impl ProblemLayer {
    /// Recognises errors of pools made from closures, of pools whose manager fails with
    /// [`io::Error`], and with the feature `sqlx` errors of sqlx.
    pub fn new() -> Self {
        Self {
            retry_after: RETRY_AFTER_DEFAULT,
            known: vec![
                #[cfg(feature = "sqlx")]
                Problem::of_sqlx,
                Problem::of::<ClosureError>,
                Problem::of::<io::Error>,
            ],
            on_problem: None,
        }
    }

    /// Sets the `Retry-After` for errors without one of their own. Default one second. The error of
    /// a tripped breaker can have its own.
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = after;
        self
    }

    /// Recognises errors of pools whose manager fails with `E`, too.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote::{AcquireError, Manager, Pool};
    /// use cenote_tower::{ProblemLayer, Text};
    /// use http::{Request, Response};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// struct Rooms;
    ///
    /// impl Manager for Rooms {
    ///     type Resource = ();
    ///     type Error = String;
    ///
    ///     async fn open(&self) -> Result<(), String> { Ok(()) }
    /// }
    ///
    /// let pool = Pool::builder(Rooms).build()?;
    /// pool.breaker().trip();
    /// let service = service_fn(|_: Request<()>| async {
    ///     pool.acquire().await?;
    ///     Ok::<_, AcquireError<String>>(Response::new(Text::default()))
    /// });
    /// let layer = ProblemLayer::new().knows::<String>();
    /// assert_eq!(layer.layer(service).oneshot(Request::new(())).await?.status(), 503);
    /// # Ok(()) }
    /// ```
    pub fn knows<E: fmt::Debug + 'static>(mut self) -> Self {
        self.known.push(Problem::of::<E>);
        self
    }

    /// Calls `call` with every problem of status 500 and above. It runs in the task of the request,
    /// before the response is sent, so it should only log and return.
    pub fn on_problem(mut self, call: impl Fn(&Problem) + Send + Sync + 'static) -> Self {
        self.on_problem = Some(Arc::new(call));
        self
    }

    fn recognise(&self, error: &(dyn Error + 'static)) -> Option<Problem> {
        let own = error.downcast_ref::<Problem>().cloned();
        own.or_else(|| self.known.iter().find_map(|known| known(error)))
    }

    /// Reports the problem of a response, and sets `Retry-After`.
    fn finish<B>(&self, response: &mut Response<B>) {
        let Some(problem) = response.extensions().get::<Problem>() else {
            return;
        };
        if let Some(call) = &self.on_problem {
            if problem.status().is_server_error() {
                call(problem);
            }
        }
        let has_none = problem.retry_after().is_none();
        if has_none && response.status() == StatusCode::SERVICE_UNAVAILABLE {
            let after = seconds(self.retry_after);
            response.headers_mut().insert(RETRY_AFTER, after);
        }
        // So that an outer layer of this kind does not report it again.
        response.extensions_mut().remove::<Problem>();
    }
}

impl Default for ProblemLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ProblemLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProblemLayer")
            .field("retry_after", &self.retry_after)
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for ProblemLayer {
    type Service = ProblemService<S>;

    fn layer(&self, inner: S) -> ProblemService<S> {
        let layer = Arc::new(self.clone());
        ProblemService { inner, layer }
    }
}

/// The service of [`ProblemLayer`].
#[derive(Clone, Debug)]
pub struct ProblemService<S> {
    inner: S,
    layer: Arc<ProblemLayer>,
}

impl<S, R, B> Service<R> for ProblemService<S>
where
    S: Service<R, Response = Response<B>>,
    S::Error: ServiceError,
    B: Body,
{
    type Response = Response<AnswerBody<B>>;
    type Error = S::Error;
    type Future = ProblemFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        ProblemFuture {
            future: self.inner.call(request),
            layer: Arc::clone(&self.layer),
        }
    }
}

pin_project! {
    /// The future of a [`ProblemService`].
    ///
    /// # Cancel safety
    /// Dropping it drops the future of the inner service. Nothing is reported.
    #[derive(Debug)]
    #[must_use = "a future does nothing unless it is polled"]
    pub struct ProblemFuture<F> {
        #[pin]
        future: F,
        layer: Arc<ProblemLayer>,
    }
}

impl<F, B, E> Future for ProblemFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: ServiceError,
    B: Body,
{
    type Output = Result<Response<AnswerBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = match ready!(this.future.poll(context)) {
            Ok(response) => answer(response),
            Err(error) => match this.layer.recognise(error.as_dyn()) {
                Some(problem) => problem.to_response().map(AnswerBody::own),
                None => return Poll::Ready(Err(error)),
            },
        };
        this.layer.finish(&mut response);
        Poll::Ready(Ok(response))
    }
}

/// Returns the response of the inner service. The empty response of a failed transaction gets a
/// body.
#[cfg(feature = "sqlx")]
fn answer<B: Body>(response: Response<B>) -> Response<AnswerBody<B>> {
    let Some(problem) = failed_transaction(&response) else {
        return response.map(AnswerBody::inner);
    };
    let (own, text) = problem.to_response().into_parts();
    let (mut parts, _empty) = response.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.extend(own.headers);
    parts.extensions.insert(problem);
    Response::from_parts(parts, AnswerBody::own(text))
}

#[cfg(not(feature = "sqlx"))]
fn answer<B: Body>(response: Response<B>) -> Response<AnswerBody<B>> {
    response.map(AnswerBody::inner)
}

/// Returns the problem of a `#[transactional]` function whose transaction failed. Its response has
/// a status, no body, and the error among its extensions. A response with that error and its own
/// body or status comes from a handler, and is left alone.
#[cfg(feature = "sqlx")]
fn failed_transaction<B: Body>(response: &Response<B>) -> Option<Problem> {
    let error = response.extensions().get::<Arc<sqlx::Error>>()?;
    let problem = Problem::of_sqlx(&**error).unwrap_or_else(|| Problem::internal(&**error));
    let is_empty = response.body().is_end_stream() && response.status() == problem.status();
    is_empty.then_some(problem)
}

/// An error of a service whose causes [`ProblemLayer`] can look at.
///
/// ```
/// use std::error::Error;
/// use cenote_tower::ServiceError;
///
/// #[derive(Debug)]
/// struct Failure(cenote::AcquireError<std::io::Error>);
/// # impl std::fmt::Display for Failure {
/// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { self.0.fmt(f) }
/// # }
///
/// impl Error for Failure {
///     fn source(&self) -> Option<&(dyn Error + 'static)> { Some(&self.0) }
/// }
///
/// impl ServiceError for Failure {
///     fn as_dyn(&self) -> &(dyn Error + 'static) { self }
/// }
///
/// let failure = Failure(cenote::AcquireError::Closed { pool: "rooms".into() });
/// assert!(failure.as_dyn().source().is_some());
/// ```
pub trait ServiceError {
    /// Returns the error.
    fn as_dyn(&self) -> &(dyn Error + 'static);
}

impl ServiceError for Box<dyn Error + Send + Sync> {
    fn as_dyn(&self) -> &(dyn Error + 'static) {
        &**self
    }
}

macro_rules! service_error {
    ($([$($generics:tt)*] $type:ty),+ $(,)?) => {$(
        impl<$($generics)*> ServiceError for $type {
            fn as_dyn(&self) -> &(dyn Error + 'static) {
                self
            }
        }
    )+};
}

service_error!(
    [] Infallible,
    [] io::Error,
    [] Problem,
    [E: fmt::Debug + 'static] AcquireError<E>,
    [E: fmt::Debug + 'static] BindError<E>,
);
#[cfg(feature = "sqlx")]
service_error!([] sqlx::Error);
