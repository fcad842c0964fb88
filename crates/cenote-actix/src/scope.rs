//! A scope per request. It lasts until the handler is done, or until a streaming body has ended.

use std::future::{Future, Ready, poll_fn, ready};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::Error;
use actix_web::body::{BodySize, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::web::Bytes;
use cenote::scope::Scope;
use pin_project_lite::pin_project;

use crate::label::label;

/// Middleware that runs each request in a [scope](cenote::scope()) of its own. A resource that is
/// pinned there, like a connection with a changed session or an open transaction, serves the next
/// use of its pool in the same request. It goes back when the handler has ended: by a response, an
/// error, a panic or a drop (a timeout, a client that disconnects).
///
/// The middleware acquires nothing by itself. A response body of known size is assumed to be in
/// memory, so its scope ends with the handler. A streaming body is read in the scope, which ends
/// when the stream has ended or is dropped. Inside another scope this middleware does nothing.
///
/// The leases that are [bound](cenote::Pool::bind) in a request are labelled with its method and
/// its route, so that a report of a dry pool names the requests that hold its resources.
///
/// ```
/// use actix_web::{App, HttpResponse, test, web};
/// use cenote::scope::Bound;
/// use cenote::{Closures, Pool};
/// use cenote_actix::{Problem, RequestScope};
///
/// async fn visit(pool: web::Data<Pool<Closures<String>>>) -> Result<String, Problem> {
///     let mut first = pool.bind().await?;
///     first.push_str("seen in this request");
///     Bound::pin(&mut first);
///     drop(first);
///     Ok(pool.bind().await?.clone())
/// }
///
/// # #[actix_web::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).build()?;
/// let data = web::Data::new(pool.clone());
/// let app = App::new().app_data(data).wrap(RequestScope::new()).route("/", web::get().to(visit));
/// let app = test::init_service(app).await;
/// let body = test::call_and_read_body(&app, test::TestRequest::get().to_request()).await;
/// assert_eq!(body, "seen in this request");
/// assert_eq!(pool.status().in_use, 0);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestScope {
    keeps: bool,
}

impl RequestScope {
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
    /// use actix_web::{App, test, web};
    /// use cenote::{Closures, Pool};
    /// use cenote_actix::{Problem, RequestScope};
    ///
    /// async fn visit(pool: web::Data<Pool<Closures<()>>>) -> Result<String, Problem> {
    ///     drop(pool.bind().await?);
    ///     Ok(pool.status().in_use.to_string())
    /// }
    ///
    /// # #[actix_web::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::from_fn(async || Ok::<_, std::io::Error>(())).build()?;
    /// let scope = RequestScope::new().keep_resources();
    /// let app = App::new().app_data(web::Data::new(pool.clone()));
    /// let app = test::init_service(app.wrap(scope).route("/", web::get().to(visit))).await;
    /// let body = test::call_and_read_body(&app, test::TestRequest::get().to_request()).await;
    /// assert_eq!(body, "1", "it stays with the request");
    /// assert_eq!(pool.status().in_use, 0);
    /// # Ok(()) }
    /// ```
    pub fn keep_resources(mut self) -> Self {
        self.keeps = true;
        self
    }

    fn open(self, label: String) -> Scope {
        let scope = Scope::new().labelled(label);
        match self.keeps {
            true => scope.hold().one_lease(),
            false => scope,
        }
    }
}

impl<S, B> Transform<S, ServiceRequest> for RequestScope
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    B: MessageBody + 'static,
{
    type Response = ServiceResponse<ScopeBody<B>>;
    type Error = Error;
    type Transform = ScopeService<S>;
    type InitError = ();
    type Future = Ready<Result<ScopeService<S>, ()>>;

    fn new_transform(&self, inner: S) -> Self::Future {
        let (inner, middleware) = (Rc::new(inner), *self);
        ready(Ok(ScopeService { inner, middleware }))
    }
}

/// The service of [`RequestScope`].
///
/// # Cancel safety
/// Dropping its future drops the future of the inner service, and then ends the scope.
#[derive(Debug)]
pub struct ScopeService<S> {
    inner: Rc<S>,
    middleware: RequestScope,
}

impl<S, B> Service<ServiceRequest> for ScopeService<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    B: MessageBody + 'static,
{
    type Response = ServiceResponse<ScopeBody<B>>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>>>>;

    fn poll_ready(&self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&self, request: ServiceRequest) -> Self::Future {
        let (inner, middleware) = (Rc::clone(&self.inner), self.middleware);
        Box::pin(async move {
            if Scope::is_inside() {
                let response = inner.call(request).await?;
                return Ok(response.map_body(|_, body| ScopeBody::new(body, None)));
            }
            let ends = Ends(middleware.open(label(&request)));
            // Lazily, so that the `call` of the service runs in the scope.
            let response = ends.0.run(async { inner.call(request).await }).await?;
            Ok(response.map_body(|_, body| ScopeBody::new(body, Some(ends))))
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
        scope: Option<Ends>,
    }
}

impl<B: MessageBody> ScopeBody<B> {
    fn new(body: B, scope: Option<Ends>) -> Self {
        let streams = body.size() == BodySize::Stream;
        Self {
            body,
            scope: scope.filter(|_| streams),
        }
    }
}

impl<B: MessageBody> MessageBody for ScopeBody<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, B::Error>>> {
        let mut this = self.project();
        let piece = match &*this.scope {
            Some(Ends(scope)) => {
                let piece = scope.run(poll_fn(|context| this.body.as_mut().poll_next(context)));
                pin!(piece).poll(context)
            }
            None => this.body.poll_next(context),
        };
        if matches!(piece, Poll::Ready(None)) {
            *this.scope = None;
        }
        piece
    }

    fn try_into_bytes(self) -> Result<Bytes, Self> {
        let Self { body, scope } = self;
        body.try_into_bytes().map_err(|body| Self { body, scope })
    }
}

/// Ends a scope when it is dropped.
#[derive(Debug)]
struct Ends(Scope);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.end();
    }
}
