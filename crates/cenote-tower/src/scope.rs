//! A scope per request. It lasts until the handler is done, or until a streaming body has ended.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use cenote::scope::{LazyScope, Scope};
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::asked::{self, Asked};

/// Runs each request in a [scope](cenote::scope()) of its own. A resource that is pinned there,
/// like a connection with a changed session or an open transaction, serves the next use of its pool
/// in the same request. It goes back when the handler has ended: by a response, an error, a panic
/// or a drop (a timeout, a client that disconnects).
///
/// The layer acquires nothing by itself. A response body of known length is assumed to be in
/// memory, so its scope ends with the handler. A streaming body is read in the scope, which ends
/// when the stream has ended or is dropped. Inside another scope this layer does nothing. The
/// future of the inner service runs in the scope; the code in its `call` does not.
///
/// The leases that are [bound](cenote::Pool::bind) in a request are labelled with its method and
/// its route, so that a report of a dry pool names the requests that hold its resources.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote::Pool;
/// use cenote::scope::Bound;
/// use cenote_tower::{ScopeLayer, Text};
/// use http::{Request, Response};
/// use tower::{Layer, ServiceExt, service_fn};
///
/// let pool = Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).build()?;
/// let service = ScopeLayer::new().layer(service_fn(|_: Request<()>| async {
///     let mut first = pool.bind().await?;
///     first.push_str("seen in this request");
///     Bound::pin(&mut first);
///     drop(first);
///     let text = pool.bind().await?.clone();
///     Ok::<_, cenote::scope::BindError<_>>(Response::new(Text::from(text)))
/// }));
/// let response = service.oneshot(Request::new(())).await?;
/// assert_eq!(response.into_body().into_inner().as_str(), "seen in this request");
/// assert_eq!(pool.status().in_use, 0);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ScopeLayer {
    keeps: bool,
}

impl ScopeLayer {
    /// Gives back what is not pinned after each use.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps the first resource that a request uses of a pool until the request ends, and uses it
    /// for all of the request: one connection per request. Two uses at the same time wait for each
    /// other, so a request never holds one resource of a pool and waits for another.
    ///
    /// A request that uses a pool once, and then does other things, holds its resource meanwhile.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote::Pool;
    /// use cenote_tower::{ScopeLayer, Text};
    /// use http::{Request, Response};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// let pool = Pool::from_fn(async || Ok::<_, std::io::Error>(())).build()?;
    /// let layer = ScopeLayer::new().keep_resources();
    /// let service = layer.layer(service_fn(|_: Request<()>| async {
    ///     drop(pool.bind().await?);
    ///     assert_eq!(pool.status().in_use, 1, "it stays with the request");
    ///     Ok::<_, cenote::scope::BindError<_>>(Response::new(Text::default()))
    /// }));
    /// service.oneshot(Request::new(())).await?;
    /// assert_eq!(pool.status().in_use, 0);
    /// # Ok(()) }
    /// ```
    pub fn keep_resources(mut self) -> Self {
        self.keeps = true;
        self
    }

    fn open(self) -> fn() -> Scope {
        match self.keeps {
            true => asked::open_keeping,
            false => asked::open,
        }
    }
}

impl<S> Layer<S> for ScopeLayer {
    type Service = ScopeService<S>;

    fn layer(&self, inner: S) -> ScopeService<S> {
        let layer = *self;
        ScopeService { inner, layer }
    }
}

/// The service of [`ScopeLayer`].
#[derive(Clone, Debug)]
pub struct ScopeService<S> {
    inner: S,
    layer: ScopeLayer,
}

impl<S, R, B> Service<Request<R>> for ScopeService<S>
where
    S: Service<Request<R>, Response = Response<B>>,
    B: Body,
{
    type Response = Response<ScopeBody<B>>;
    type Error = S::Error;
    type Future = ScopeFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let scope = (!Scope::is_inside()).then(|| RequestScope {
            scope: LazyScope::opened_by(self.layer.open()),
            asked: Some(Asked::of(&request)),
        });
        ScopeFuture {
            future: self.inner.call(request),
            scope,
        }
    }
}

pin_project! {
    /// The future of a [`ScopeService`].
    ///
    /// # Cancel safety
    /// Dropping it drops the future of the inner service, and then ends the scope.
    #[derive(Debug)]
    #[must_use = "a future does nothing unless it is polled"]
    pub struct ScopeFuture<F> {
        #[pin]
        future: F,
        // Declared after the future, so that the scope ends after the future is dropped.
        scope: Option<RequestScope>,
    }
}

impl<F, B, E> Future for ScopeFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body,
{
    type Output = Result<Response<ScopeBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut polled = Poll::Pending;
        poll_in(this.scope, &mut polled, || this.future.poll(context));
        polled.map(|done| {
            let scope = this.scope.take();
            done.map(|response| response.map(|body| ScopeBody::new(body, scope)))
        })
    }
}

pin_project! {
    /// A body that is read in the scope of its request.
    ///
    /// # Cancel safety
    /// Dropping it drops the inner body, and then ends the scope.
    #[derive(Debug)]
    pub struct ScopeBody<B> {
        #[pin]
        body: B,
        // Declared after the body, so that the scope ends after the body is dropped.
        scope: Option<RequestScope>,
    }
}

impl<B: Body> ScopeBody<B> {
    fn new(body: B, scope: Option<RequestScope>) -> Self {
        let in_memory = body.is_end_stream() || body.size_hint().exact().is_some();
        Self {
            body,
            scope: scope.filter(|_| !in_memory),
        }
    }
}

impl<B> ScopeBody<B> {
    /// Returns the inner body, and ends the scope.
    pub fn into_inner(self) -> B {
        self.body
    }
}

impl<B: Body> Body for ScopeBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        let mut frame = Poll::Pending;
        poll_in(this.scope, &mut frame, || {
            this.body.as_mut().poll_frame(context)
        });
        if matches!(frame, Poll::Ready(None)) || this.body.is_end_stream() {
            *this.scope = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The scope of a request, which is opened when code in the request asks for it.
#[derive(Debug)]
struct RequestScope {
    scope: LazyScope,
    asked: Option<Asked>,
}

impl RequestScope {
    fn enter<T>(&mut self, call: impl FnOnce() -> T) -> T {
        asked::during(&mut self.asked, || self.scope.enter(call))
    }
}

/// Polls in the scope, if there is one. The result goes to `polled`, because moving a response
/// costs more than the scope.
#[inline]
fn poll_in<T>(
    scope: &mut Option<RequestScope>,
    polled: &mut Poll<T>,
    inner: impl FnOnce() -> Poll<T>,
) {
    match scope {
        Some(scope) => scope.enter(|| *polled = inner()),
        None => *polled = inner(),
    }
}
