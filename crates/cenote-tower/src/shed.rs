//! Load shedding: a request that would wait too long is refused before its handler runs.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use cenote::{Manager, Pool};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::estimate::{Estimate, now};
use crate::problem::Problem;
use crate::text::AnswerBody;

/// Refuses a request with a 503 before its handler runs, if it would wait for the pool longer than
/// it can.
///
/// The wait is estimated. While the pool has waiters, all `n` resources are in use, and with a mean
/// hold time `h` one comes back every `h / n`. The layer reads this pace from the pool's count of
/// returns since the queue began, so at the beginning of a queue it refuses no request. An estimate
/// can be wrong: a request that is let in may still get a 503 from the pool.
///
/// The layer does not know which requests need the pool, so put it around the routes that do.
/// `max_waiters` of the pool is simpler: it limits the number of waiters.
///
/// On SQLite, writers have a queue of their own, which is the [annex](cenote::Builder::annex) of
/// the pool. A request may wait there, unless its method is one that only reads (`GET`, `HEAD`,
/// `OPTIONS`). The longer of the two waits counts.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(())).build()?;
/// use std::time::Duration;
/// use cenote_tower::ShedLayer;
///
/// use cenote_tower::Text;
/// use http::{Request, Response};
/// use tower::{Layer, ServiceExt, service_fn};
///
/// // Two seconds, or the limit of the client.
/// let layer = ShedLayer::new(&pool, Duration::from_secs(2)).patience_of(|headers| {
///     let seconds = headers.get("x-timeout-seconds")?.to_str().ok()?.parse().ok()?;
///     Some(Duration::from_secs(seconds))
/// });
/// let service = layer.layer(service_fn(async |_: Request<()>| {
///     Ok::<_, std::io::Error>(Response::new(Text::default()))
/// }));
/// assert_eq!(service.oneshot(Request::new(())).await?.status(), 200);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ShedLayer {
    estimate: Arc<Estimate>,
    /// The queue of the annex, if the pool has one.
    annex: Option<Arc<Estimate>>,
    /// Whether every request may wait for the annex.
    all_write: bool,
    patience: Duration,
    patience_of: Option<Arc<PatienceOf>>,
}

type PatienceOf = dyn Fn(&HeaderMap) -> Option<Duration> + Send + Sync;

impl ShedLayer {
    /// Refuses requests that would wait for `pool` longer than `patience`.
    pub fn new<M: Manager + 'static>(pool: &Pool<M>, patience: Duration) -> Self {
        Self {
            estimate: Arc::new(Estimate::of(pool)),
            annex: pool.annex().map(|annex| Arc::new(Estimate::of(annex))),
            all_write: false,
            patience,
            patience_of: None,
        }
    }

    #[cfg(feature = "sqlx")]
    pub(crate) fn all_write(mut self, all_write: bool) -> Self {
        self.all_write = all_write;
        self
    }

    #[cfg(feature = "sqlx")]
    pub(crate) fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Reads how long a request can wait from its headers. If `ask` returns `None`, the limit is
    /// that of [`new`](ShedLayer::new).
    pub fn patience_of(
        mut self,
        ask: impl Fn(&HeaderMap) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        self.patience_of = Some(Arc::new(ask));
        self
    }

    /// Returns the problem of a request that is refused.
    fn refuse(&self, method: &Method, headers: &HeaderMap) -> Option<Problem> {
        let asked = self.patience_of.as_ref().and_then(|ask| ask(headers));
        let patience = asked.unwrap_or(self.patience);
        let now = now();
        let mut wait = self.estimate.wait(now);
        if let Some(annex) = &self.annex {
            // The pace is measured at every request.
            let for_annex = annex.wait(now);
            if self.all_write || !method.is_safe() {
                wait = wait.max(for_annex);
            }
        }
        (wait > patience).then(|| {
            let report = format!(
                "refused: the wait for the pool is about {wait:.1?}, and the request can wait {patience:.1?}"
            );
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the service is busy, try again later")
                .with_estimate(wait)
                .with_report(report)
        })
    }
}

impl fmt::Debug for ShedLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShedLayer")
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for ShedLayer {
    type Service = ShedService<S>;

    fn layer(&self, inner: S) -> ShedService<S> {
        let layer = self.clone();
        ShedService { inner, layer }
    }
}

/// The service of [`ShedLayer`].
#[derive(Clone, Debug)]
pub struct ShedService<S> {
    inner: S,
    layer: ShedLayer,
}

impl<S, R, B> Service<Request<R>> for ShedService<S>
where
    S: Service<Request<R>, Response = Response<B>>,
{
    type Response = Response<AnswerBody<B>>;
    type Error = S::Error;
    type Future = ShedFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let refused = self.layer.refuse(request.method(), request.headers());
        ShedFuture {
            served: refused.is_none().then(|| self.inner.call(request)),
            refused,
        }
    }
}

pin_project! {
    /// The future of a [`ShedService`].
    ///
    /// # Cancel safety
    /// Dropping it drops the future of the inner service.
    #[derive(Debug)]
    #[must_use = "a future does nothing unless it is polled"]
    pub struct ShedFuture<F> {
        #[pin]
        served: Option<F>,
        refused: Option<Problem>,
    }
}

impl<F, B, E> Future for ShedFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<AnswerBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Some(served) = this.served.as_pin_mut() {
            let done = ready!(served.poll(context));
            return Poll::Ready(done.map(|response| response.map(AnswerBody::inner)));
        }
        let refused = this.refused.take();
        let refused = refused.expect("a future is not polled after it is ready");
        Poll::Ready(Ok(refused.to_response().map(AnswerBody::own)))
    }
}
