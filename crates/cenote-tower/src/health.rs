//! Health checks: whether this instance is alive, and whether it is ready for requests.

use std::convert::Infallible;
use std::fmt;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use cenote::{Health, Manager, Pool};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use tower_service::Service;

use crate::text::{Text, quoted};

/// A service that responds with 200 while every pool is ready, and with 503 while a pool is stuck,
/// down (its opens hang or fail) or closed, and after [`drain`](Readiness::drain). It acquires
/// nothing.
///
/// A busy pool is ready. A pool that has opened nothing yet is ready too, unless
/// [`require_warm`](Readiness::require_warm) was called.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_tower::Readiness;
/// use tower::ServiceExt;
///
/// let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(())).name("rooms").max_size(1).build()?;
/// let readiness = Readiness::new().pool(&pool);
/// let _all_of_it = pool.acquire().await?;
/// let response = readiness.clone().oneshot(()).await?;
/// assert_eq!((response.status().as_u16(), response.body().as_str()), (200, r#"{"ready":true,"pools":{"rooms":"busy"}}"#));
///
/// pool.close();
/// assert_eq!(readiness.oneshot(()).await?.status(), 503);
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct Readiness {
    pools: Vec<(String, Arc<dyn Fn() -> Health + Send + Sync>)>,
    warm_only: bool,
    /// Shared by all clones.
    draining: Arc<AtomicBool>,
}

impl Readiness {
    /// Checks no pool yet, and so is ready.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a pool. The pool of a database is `db.pool()`.
    pub fn pool<M: Manager + 'static>(mut self, pool: &Pool<M>) -> Self {
        let (name, pool) = (pool.name().to_owned(), pool.clone());
        self.pools.push((name, Arc::new(move || pool.health())));
        self
    }

    /// Counts a pool as ready only after it has opened a resource. Without this call a pool that
    /// was never used is ready, although its server may be unreachable.
    ///
    /// An instance without requests opens nothing by itself, unless its pool has a `min_size` or a
    /// `min_idle`: call [`Pool::warm`] at the start.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_tower::Readiness;
    /// use tower::ServiceExt;
    ///
    /// let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(())).build()?;
    /// let readiness = Readiness::new().pool(&pool).require_warm();
    /// assert_eq!(readiness.clone().oneshot(()).await?.status(), 503);
    ///
    /// pool.warm().await?;
    /// assert_eq!(readiness.oneshot(()).await?.status(), 200);
    /// # Ok(()) }
    /// ```
    pub fn require_warm(mut self) -> Self {
        self.warm_only = true;
        self
    }

    /// Reports not ready from now on, for this value and all of its clones. Requests are served as
    /// before: the load balancer notices and sends no more of them, and then the program stops.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_tower::Readiness;
    /// use tower::ServiceExt;
    ///
    /// let readiness = Readiness::new();
    /// let served = readiness.clone();
    /// readiness.drain();
    /// let response = served.oneshot(()).await?;
    /// assert_eq!((response.status().as_u16(), response.body().as_str()), (503, r#"{"ready":false,"draining":true,"pools":{}}"#));
    /// # Ok(()) }
    /// ```
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Returns whether [`drain`](Readiness::drain) was called.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    fn accepts(&self, health: Health) -> bool {
        health.is_ready() && !(self.warm_only && health == Health::Unproven)
    }

    fn respond(&self) -> Response<Text> {
        let states: Vec<_> = self.pools.iter().map(|(name, ask)| (name, ask())).collect();
        let draining = self.is_draining();
        let is_ready = !draining && states.iter().all(|(_, health)| self.accepts(*health));
        let pools: Vec<String> = states
            .iter()
            .map(|(name, health)| format!("{}:{}", quoted(name), quoted(&health.to_string())))
            .collect();
        let draining = if draining { r#","draining":true"# } else { "" };
        let pools = pools.join(",");
        let body = format!(r#"{{"ready":{is_ready}{draining},"pools":{{{pools}}}}}"#);
        let status = match is_ready {
            true => StatusCode::OK,
            false => StatusCode::SERVICE_UNAVAILABLE,
        };
        json(status, body)
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.pools.iter().map(|(name, _)| name);
        f.debug_set().entries(names).finish()
    }
}

/// A service that always responds with 200. It does not look at the pools, because a restart of the
/// process does not repair its database.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_tower::Liveness;
/// use tower::ServiceExt;
///
/// let response = Liveness::new().oneshot(()).await?;
/// assert_eq!((response.status().as_u16(), response.body().as_str()), (200, r#"{"alive":true}"#));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Liveness {}

impl Liveness {
    /// Has no settings.
    pub fn new() -> Self {
        Self {}
    }

    fn respond(self) -> Response<Text> {
        json(StatusCode::OK, String::from(r#"{"alive":true}"#))
    }
}

/// Makes a service of a type whose `respond` needs no request and never waits.
macro_rules! service {
    ($($type:ty),+) => {$(
        impl<R> Service<R> for $type {
            type Response = Response<Text>;
            type Error = Infallible;
            type Future = Ready<Result<Response<Text>, Infallible>>;

            fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
                Poll::Ready(Ok(()))
            }

            fn call(&mut self, _: R) -> Self::Future {
                ready(Ok(self.respond()))
            }
        }
    )+};
}

service!(Readiness, Liveness);

/// Returns the routes `/livez` ([`Liveness`]) and `/readyz` ([`Readiness`]).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use axum::Router;
/// use axum::body::Body;
/// use cenote_tower::{Readiness, health_routes};
/// use http::Request;
/// use tower::ServiceExt;
///
/// let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(())).build()?;
/// let app: Router = Router::new().merge(health_routes(Readiness::new().pool(&pool)));
/// for path in ["/livez", "/readyz"] {
///     let response = app.clone().oneshot(Request::get(path).body(Body::empty())?).await?;
///     assert_eq!(response.status(), 200);
/// }
/// # Ok(()) }
/// ```
#[cfg(feature = "axum")]
pub fn health_routes<S: Clone + Send + Sync + 'static>(readiness: Readiness) -> axum::Router<S> {
    axum::Router::new()
        .route_service("/livez", Liveness::new())
        .route_service("/readyz", readiness)
}

fn json(status: StatusCode, body: String) -> Response<Text> {
    let mut response = Response::new(Text::from(body));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
