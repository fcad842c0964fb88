//! The layer that answers for a pool that has nothing to lend, and tells the log.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use cenote::{AcquireError, BindError, ClosureError};
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

/// Turns errors that mean "nothing to lend now" into a 503 with `Retry-After`, and hands every [`Problem`] of 500 and above to a callback.
///
/// It sees errors of the service inside, answers that a handler made from a [`Problem`], and with the feature `sqlx` the empty answers of
/// `#[transactional]` functions whose transaction failed, which it puts in words. All other errors and answers pass untouched. The report
/// goes to a callback and not to a logging facade: that costs no dependency, and the program says where it goes. Without a callback it goes nowhere.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use cenote_tower::{ProblemLayer, Text};
/// use http::{Request, Response};
/// use tower::{Layer, ServiceExt, service_fn};
///
/// let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(())).build()?;
/// pool.deactivate();
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
    /// Knows the errors of pools made of closures, of those that fail with an I/O error, and with the feature `sqlx` those of sqlx.
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

    /// What `Retry-After` says where the error does not know: a second by default. A breaker knows, sometimes.
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = after;
        self
    }

    /// Knows the errors of pools whose manager fails with `E`, too.
    pub fn knows<E: Error + 'static>(mut self) -> Self {
        self.known.push(Problem::of::<E>);
        self
    }

    /// Called with every problem of 500 and above before the answer goes out, in the request's task: write it down and return.
    pub fn on_problem(mut self, call: impl Fn(&Problem) + Send + Sync + 'static) -> Self {
        self.on_problem = Some(Arc::new(call));
        self
    }

    fn recognise(&self, error: &(dyn Error + 'static)) -> Option<Problem> {
        let own = error.downcast_ref::<Problem>().cloned();
        own.or_else(|| self.known.iter().find_map(|known| known(error)))
    }

    /// The last word on an answer.
    fn finish<B>(&self, response: &mut Response<B>) {
        let Some(problem) = response.extensions().get::<Problem>() else {
            return;
        };
        if let Some(call) = &self.on_problem {
            if problem.status().is_server_error() {
                call(problem);
            }
        }
        let unsaid = problem.retry_after().is_none();
        if unsaid && response.status() == StatusCode::SERVICE_UNAVAILABLE {
            let after = seconds(self.retry_after);
            response.headers_mut().insert(RETRY_AFTER, after);
        }
        // Told once, also where two such layers are stacked.
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

/// What [`ProblemLayer`] makes of a service.
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
    /// The request of a [`ProblemService`] at work.
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

/// The answer of the service inside, or that of a transactional function in words.
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

/// A `#[transactional]` function whose transaction failed answers with a status and no body, and the error among the extensions. Whoever has put
/// such an error there with words or a status of their own is not meant.
#[cfg(feature = "sqlx")]
fn failed_transaction<B: Body>(response: &Response<B>) -> Option<Problem> {
    let error = response.extensions().get::<Arc<sqlx::Error>>()?;
    let problem = Problem::of_sqlx(&**error).unwrap_or_else(|| Problem::internal(&**error));
    let is_meant = response.body().is_end_stream() && response.status() == problem.status();
    is_meant.then_some(problem)
}

/// An error of a service that [`ProblemLayer`] can look into. For a type of your own it is one line.
pub trait ServiceError {
    /// The error, for a look at its causes.
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

service_error!([] Infallible, [] io::Error, [] Problem, [E: Error + 'static] AcquireError<E>, [E: Error + 'static] BindError<E>);
#[cfg(feature = "sqlx")]
service_error!([] sqlx::Error);
