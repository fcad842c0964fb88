//! The layer that turns errors of pools into responses, and reports them.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use cenote::{ClosureError, Manager, Pool};
use http::header::{CONTENT_LENGTH, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::asked::Asked;
#[cfg(feature = "sqlx")]
use crate::convert::causes;
use crate::estimate::{Estimate, Estimates};
#[cfg(feature = "tracing")]
use crate::log::Log;
use crate::problem::Problem;
use crate::retry_after::{RETRY_AFTER_DEFAULT, RetryAfter};
use crate::service_error::ServiceError;
use crate::text::AnswerBody;

/// Turns errors of a pool that has nothing to lend into a 503 with `Retry-After`, and calls a
/// function with every [`Problem`] of status 500 and above.
///
/// It sees errors of the inner service, and responses that a handler made from a [`Problem`]. With
/// the feature `sqlx` it also sees the empty responses of `#[transactional]` functions whose
/// transaction failed, and gives them a body. All other errors and responses pass unchanged.
///
/// It writes a line for each of these problems by the facade `tracing` (feature `tracing`, on by
/// default): a warning for a 503, an error for the others, with the method and the route of the
/// request. In a storm it writes at most ten lines per second, and the next line says how many are
/// missing.
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
/// let after: u64 = response.headers()["retry-after"].to_str()?.parse()?;
/// assert!((30..=45).contains(&after));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ProblemLayer {
    retry_after: Duration,
    known: Vec<Recognise>,
    on_problem: Option<Arc<OnProblem>>,
    #[cfg(feature = "tracing")]
    log: Option<Arc<Log>>,
    estimates: Estimates,
    #[cfg(feature = "sqlx")]
    sqlx_errors: Option<Arc<SqlxErrors>>,
}

#[cfg(feature = "sqlx")]
type SqlxErrors = dyn Fn(&sqlx::Error) -> Option<Problem> + Send + Sync;
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
            #[cfg(feature = "tracing")]
            log: Some(Arc::new(Log::new())),
            estimates: Estimates::default(),
            #[cfg(feature = "sqlx")]
            sqlx_errors: None,
        }
    }

    /// Sets the least `Retry-After` for errors without one of their own. Default one second. If the
    /// line of the pool is longer, the estimated wait in it counts. Up to half of the value is
    /// added at random, at least up to two seconds, so that clients do not all return at once.
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = after;
        self
    }

    /// Measures the line of `pool` from the first request on. Other pools are measured from their
    /// first error on.
    pub fn pool<M: Manager + 'static>(self, pool: &Pool<M>) -> Self {
        for part in [Some(pool), pool.annex()].into_iter().flatten() {
            self.estimates.add(part.name(), Estimate::of(part));
        }
        self
    }

    /// Sets what becomes of errors of sqlx, in one place: those of services, those that `?` made a
    /// [`Problem`] from, and those of failed transactions. Where `judge` returns `None`, the table
    /// of [`Problem`] counts. A transaction inside of this layer rolls back by that table, too.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_tower::{Problem, ProblemLayer, Text};
    /// use http::{Request, Response, StatusCode};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// let layer = ProblemLayer::new().sqlx_errors(|error| match error {
    ///     sqlx::Error::RowNotFound => Some(Problem::new(StatusCode::GONE, "no longer here")),
    ///     _ => None,
    /// });
    /// let service = service_fn(async |_: Request<()>| {
    ///     Err::<Response<Text>, _>(sqlx::Error::RowNotFound)
    /// });
    /// assert_eq!(layer.layer(service).oneshot(Request::new(())).await?.status(), 410);
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "sqlx")]
    pub fn sqlx_errors(
        mut self,
        judge: impl Fn(&sqlx::Error) -> Option<Problem> + Send + Sync + 'static,
    ) -> Self {
        self.sqlx_errors = Some(Arc::new(judge));
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

    /// Calls `call` with every problem of status 500 and above. [`Problem::method`],
    /// [`Problem::route`] and [`Problem::report`] tell what failed. It runs in the task of the
    /// request, before the response is sent, so it should only log and return.
    pub fn on_problem(mut self, call: impl Fn(&Problem) + Send + Sync + 'static) -> Self {
        self.on_problem = Some(Arc::new(call));
        self
    }

    /// Writes no lines by itself. [`on_problem`](ProblemLayer::on_problem) has all reports.
    #[cfg(feature = "tracing")]
    pub fn without_log(mut self) -> Self {
        self.log = None;
        self
    }

    fn recognise(&self, error: &(dyn Error + 'static)) -> Option<Problem> {
        let own = error.downcast_ref::<Problem>().cloned();
        let own = own.map(|problem| self.judged(&problem).unwrap_or(problem));
        #[cfg(feature = "sqlx")]
        let own = own.or_else(|| {
            let error = causes(error).find_map(|cause| cause.downcast_ref::<sqlx::Error>())?;
            self.judge(error)
        });
        own.or_else(|| self.known.iter().find_map(|known| known(error)))
    }

    /// Returns the problem of a response, and the response that shows it.
    fn look_at<B: Body>(&self, response: Response<B>, asked: &Asked) -> Response<AnswerBody<B>> {
        let shown = response.extensions().get::<Problem>().cloned();
        #[cfg(feature = "sqlx")]
        let (is_empty, shown) = match shown {
            None => (true, failed_transaction(&response)),
            shown => (false, shown),
        };
        #[cfg(not(feature = "sqlx"))]
        let is_empty = false;
        let Some(shown) = shown else {
            return response.map(AnswerBody::inner);
        };
        let (judged, problem) = match self.judged(&shown) {
            Some(judged) => (true, judged),
            None => (false, shown),
        };
        let mut response = match is_empty || judged {
            true => replace(response, &problem),
            false => response.map(AnswerBody::inner),
        };
        self.finish(&mut response, problem, asked);
        response
    }

    /// Reports the problem of a response, and sets `Retry-After`.
    fn finish<B>(&self, response: &mut Response<B>, problem: Problem, asked: &Asked) {
        let is_busy = response.status() == StatusCode::SERVICE_UNAVAILABLE;
        if is_busy && problem.retry_after == RetryAfter::Unset {
            let estimate = problem.line.as_ref();
            let estimate = estimate.and_then(|line| self.estimates.wait(line));
            let after = estimate.unwrap_or_default().max(self.retry_after);
            let after = RetryAfter::About(after).header(after);
            after.map(|after| response.headers_mut().insert(RETRY_AFTER, after));
        }
        if problem.status().is_server_error() {
            self.report(&problem.with_request(asked.clone()));
        }
        // So that an outer layer of this kind does not report it again.
        response.extensions_mut().remove::<Problem>();
    }

    fn report(&self, problem: &Problem) {
        #[cfg(feature = "tracing")]
        if let Some(log) = &self.log {
            log.write(problem);
        }
        if let Some(call) = &self.on_problem {
            call(problem);
        }
    }

    /// Returns the problem that the program makes of the same error, if it makes one.
    #[cfg(feature = "sqlx")]
    fn judged(&self, problem: &Problem) -> Option<Problem> {
        let judged = self.judge(problem.error.as_deref()?)?;
        Some(match judged.has_report() {
            true => judged,
            false => judged.with_report(problem.report()),
        })
    }

    #[cfg(not(feature = "sqlx"))]
    fn judged(&self, _: &Problem) -> Option<Problem> {
        None
    }

    #[cfg(feature = "sqlx")]
    fn judge(&self, error: &sqlx::Error) -> Option<Problem> {
        self.sqlx_errors.as_ref().and_then(|judge| judge(error))
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

impl<S, R, B> Service<Request<R>> for ProblemService<S>
where
    S: Service<Request<R>, Response = Response<B>>,
    S::Error: ServiceError,
    B: Body,
{
    type Response = Response<AnswerBody<B>>;
    type Error = S::Error;
    type Future = ProblemFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        self.layer.estimates.look();
        let asked = Asked::of(&request);
        ProblemFuture {
            future: self.inner.call(request),
            layer: Arc::clone(&self.layer),
            asked,
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
        asked: Asked,
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
        let response = match ready!(this.future.poll(context)) {
            Ok(response) => response,
            Err(error) => match this.layer.recognise(error.as_dyn()) {
                Some(problem) => {
                    let mut response = problem.to_response().map(AnswerBody::own);
                    this.layer.finish(&mut response, problem, this.asked);
                    return Poll::Ready(Ok(response));
                }
                None => return Poll::Ready(Err(error)),
            },
        };
        Poll::Ready(Ok(this.layer.look_at(response, this.asked)))
    }
}

/// Gives a response the status, the headers and the body of `problem`. Its other headers stay.
fn replace<B: Body>(response: Response<B>, problem: &Problem) -> Response<AnswerBody<B>> {
    let (own, text) = problem.to_response().into_parts();
    let (mut parts, _) = response.into_parts();
    parts.status = own.status;
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.remove(RETRY_AFTER);
    parts.headers.extend(own.headers);
    Response::from_parts(parts, AnswerBody::own(text))
}

/// Returns the error of a `#[transactional]` function whose transaction failed. Its response has a
/// status, no body, and the error among its extensions. A response with that error and its own body
/// or status comes from a handler, and is left alone.
#[cfg(feature = "sqlx")]
fn failed_transaction<B: Body>(response: &Response<B>) -> Option<Problem> {
    let error = response.extensions().get::<Arc<sqlx::Error>>()?;
    let problem = Problem::of_failed_transaction(Arc::clone(error));
    let is_empty = response.body().is_end_stream() && response.status() == problem.status();
    is_empty.then_some(problem)
}
