//! Shedding load at the door: who would wait in vain is told at once.

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

/// A look at the pool costs every caller of that pool a little, so that one serves all requests of this time.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The pace is that of the last one to two of these.
const PACE_OVER: Duration = Duration::from_secs(1);

/// Refuses a request by a 503 before its handler runs, if the line for the pool is already longer than the request can wait.
///
/// The wait of a newcomer is estimated from the mean hold time: while somebody waits all resources are out, and with `n` of them and a mean hold
/// time `h` one comes back every `h / n`. That pace is read from the pool's count of returns since the line began, so at the beginning of a line
/// nobody is refused. An estimate is not a promise: some are let in who wait in vain, and get their 503 from the pool.
///
/// Without this layer nobody is refused at the door. It is for services where most requests need the pool; those that do not are refused as well, so
/// put it around the routes that do. `max_waiters` of the pool is the plainer means: a fixed number of waiters. On SQLite who wants to write stands in a
/// line of its own, which this layer does not see.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(())).build()?;
/// use std::time::Duration;
/// use cenote_tower::ShedLayer;
///
/// // Two seconds at most, or what the client says.
/// let layer = ShedLayer::new(&pool, Duration::from_secs(2)).patience_of(|headers| {
///     let seconds = headers.get("x-timeout-seconds")?.to_str().ok()?.parse().ok()?;
///     Some(Duration::from_secs(seconds))
/// });
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ShedLayer {
    door: Arc<Door>,
    patience: Duration,
    patience_of: Option<Arc<PatienceOf>>,
}

type PatienceOf = dyn Fn(&HeaderMap) -> Option<Duration> + Send + Sync;

impl ShedLayer {
    /// Refuses those who would wait for `pool` longer than `patience`.
    pub fn new<M: Manager + 'static>(pool: &Pool<M>, patience: Duration) -> Self {
        let pool = pool.clone();
        Self {
            door: Arc::new(Door {
                look: Box::new(move || pool.status()),
                line: Mutex::default(),
            }),
            patience,
            patience_of: None,
        }
    }

    /// How long a request can wait, by its headers. Where they do not say, it is what [`new`](ShedLayer::new) was told.
    pub fn patience_of(
        mut self,
        ask: impl Fn(&HeaderMap) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        self.patience_of = Some(Arc::new(ask));
        self
    }

    /// The answer for who is not let in.
    fn refuse(&self, headers: &HeaderMap) -> Option<Problem> {
        let asked = self.patience_of.as_ref().and_then(|ask| ask(headers));
        let patience = asked.unwrap_or(self.patience);
        let wait = self.door.wait(now());
        (wait > patience).then(|| {
            let report = format!(
                "refused at the door: the pool's line takes {wait:.1?}, the request has {patience:.1?}"
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

/// What [`ShedLayer`] makes of a service.
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
    /// The request of a [`ShedService`] at work, or refused.
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
        let refused = refused.expect("a future is not polled after its end");
        Poll::Ready(Ok(refused.to_response().map(AnswerBody::own)))
    }
}

/// Looks at the pool now and then, and keeps the pace of its line.
struct Door {
    look: Box<dyn Fn() -> Status + Send + Sync>,
    line: Mutex<Line>,
}

impl Door {
    /// How long a newcomer would wait.
    fn wait(&self, now: Instant) -> Duration {
        {
            let mut line = self.lock();
            if !line.is_due(now) {
                return line.wait;
            }
        }
        let seen = (self.look)();
        let mut line = self.lock();
        line.hear(now, seen.waiting, seen.released);
        line.wait
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is known of the line: plain data, told the time.
#[derive(Default)]
struct Line {
    looked: Option<Instant>,
    /// Where the pace is measured from, and from where it will be next.
    from: Option<Mark>,
    next: Option<Mark>,
    wait: Duration,
}

#[derive(Clone, Copy)]
struct Mark {
    at: Instant,
    released: u64,
}

impl Line {
    /// Is it time for another look? Then it is the caller's to take.
    fn is_due(&mut self, now: Instant) -> bool {
        let looked = self.looked.map(|at| now.saturating_duration_since(at));
        let due = looked.is_none_or(|ago| ago >= LOOK_EVERY);
        if due {
            self.looked = Some(now);
        }
        due
    }

    fn hear(&mut self, now: Instant, waiting: usize, released: u64) {
        let here = Mark { at: now, released };
        if waiting == 0 {
            (self.from, self.next, self.wait) = (None, None, Duration::ZERO);
            return;
        }
        let from = *self.from.get_or_insert(here);
        let next = *self.next.get_or_insert(here);
        let took = now.saturating_duration_since(from.at);
        // Nothing came back yet: as if one did now, for it cannot be sooner.
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
    reason = "the ban guards the pool; this measures its pace from outside"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
