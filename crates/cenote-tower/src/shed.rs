//! Load shedding: a request that would wait too long is refused before its handler runs.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use cenote::{Manager, Pool, Status};
use http::{HeaderMap, Request, Response, StatusCode};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::problem::Problem;
use crate::text::AnswerBody;

/// How often the status of the pool is read: it takes the lock of the pool, so requests share it.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The pace of the returns is measured over the last one to two of these intervals.
const PACE_OVER: Duration = Duration::from_secs(1);

/// Refuses a request with a 503 before its handler runs, if it would wait for the pool longer than
/// it can.
///
/// The wait is estimated. While the pool has waiters, all `n` resources are in use, and with a mean
/// hold time `h` one comes back every `h / n`. The layer reads this pace from the pool's count of
/// returns since the queue began, so at the beginning of a queue it refuses no request. An estimate
/// can be wrong: a request that is let in may still get a 503 from the pool.
///
/// The layer does not know which requests need the pool, so put it around the routes that do.
/// `max_waiters` of the pool is simpler: it limits the number of waiters. On SQLite, writers have a
/// queue of their own, which this layer does not see.
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
    patience: Duration,
    patience_of: Option<Arc<PatienceOf>>,
}

type PatienceOf = dyn Fn(&HeaderMap) -> Option<Duration> + Send + Sync;

impl ShedLayer {
    /// Refuses requests that would wait for `pool` longer than `patience`.
    pub fn new<M: Manager + 'static>(pool: &Pool<M>, patience: Duration) -> Self {
        let pool = pool.clone();
        Self {
            estimate: Arc::new(Estimate {
                look: Box::new(move || pool.status()),
                queue: Mutex::default(),
            }),
            patience,
            patience_of: None,
        }
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
    fn refuse(&self, headers: &HeaderMap) -> Option<Problem> {
        let asked = self.patience_of.as_ref().and_then(|ask| ask(headers));
        let patience = asked.unwrap_or(self.patience);
        let wait = self.estimate.wait(now());
        (wait > patience).then(|| {
            let report = format!(
                "refused: the wait for the pool is about {wait:.1?}, and the request can wait {patience:.1?}"
            );
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the service is busy, try again later")
                .with_retry_after(wait)
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
        let refused = self.layer.refuse(request.headers());
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

/// The pool, and the estimate of its queue.
struct Estimate {
    look: Box<dyn Fn() -> Status + Send + Sync>,
    queue: Mutex<Queue>,
}

impl Estimate {
    /// Returns how long a new request would wait.
    fn wait(&self, now: Instant) -> Duration {
        {
            let mut queue = self.lock();
            if !queue.is_due(now) {
                return queue.wait;
            }
        }
        let seen = (self.look)();
        let mut queue = self.lock();
        queue.update(now, seen.waiting, seen.released);
        queue.wait
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The estimate of the queue: plain data that is given the time.
#[derive(Default)]
struct Queue {
    looked: Option<Instant>,
    /// The start of the interval that the pace is measured over, and of the next one.
    from: Option<Mark>,
    next: Option<Mark>,
    wait: Duration,
}

#[derive(Clone, Copy)]
struct Mark {
    at: Instant,
    released: u64,
}

impl Queue {
    /// Returns whether the caller must read the status of the pool now.
    fn is_due(&mut self, now: Instant) -> bool {
        let looked = self.looked.map(|at| now.saturating_duration_since(at));
        let due = looked.is_none_or(|ago| ago >= LOOK_EVERY);
        if due {
            self.looked = Some(now);
        }
        due
    }

    fn update(&mut self, now: Instant, waiting: usize, released: u64) {
        let here = Mark { at: now, released };
        if waiting == 0 {
            (self.from, self.next, self.wait) = (None, None, Duration::ZERO);
            return;
        }
        let from = *self.from.get_or_insert(here);
        let next = *self.next.get_or_insert(here);
        let took = now.saturating_duration_since(from.at);
        // If none came back yet, the next one comes back now at the earliest.
        let returns = released.saturating_sub(from.released).max(1);
        let ahead = waiting as f64 + 1.0;
        self.wait = Duration::try_from_secs_f64(took.as_secs_f64() * ahead / returns as f64)
            .unwrap_or(Duration::MAX);
        if now.saturating_duration_since(next.at) >= PACE_OVER {
            (self.from, self.next) = (Some(next), Some(here));
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the ban is for the core; this measures its pace from outside"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
