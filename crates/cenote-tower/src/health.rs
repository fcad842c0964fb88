//! Probes: whether this instance is alive, and whether it should be sent work.

use std::convert::Infallible;
use std::fmt;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use cenote::{Health, Manager, Pool};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use tower_service::Service;

use crate::text::{Text, quoted};

/// A service that answers 200 while every pool is ready, and 503 while one is stuck, down or closed.
/// Busy is ready. A pool that has opened nothing yet is ready, too, unless
/// [`require_proven`](Readiness::require_proven) was called. Acquires nothing.
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
    proven_only: bool,
}

impl Readiness {
    /// Of no pool yet: ready.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks this pool, too. Of a database it is `db.pool()`.
    pub fn pool<M: Manager + 'static>(mut self, pool: &Pool<M>) -> Self {
        let (name, pool) = (pool.name().to_owned(), pool.clone());
        self.pools.push((name, Arc::new(move || pool.health())));
        self
    }

    /// Counts a pool as ready only once it has opened something. Without this a pool that was never
    /// used is ready, although its server may be out of reach.
    ///
    /// An instance that is sent no work opens nothing by itself, unless its pool has a `min_size` or
    /// a `min_idle`: call [`Pool::warm`] at the start.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_tower::Readiness;
    /// use tower::ServiceExt;
    ///
    /// let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(())).build()?;
    /// let readiness = Readiness::new().pool(&pool).require_proven();
    /// assert_eq!(readiness.clone().oneshot(()).await?.status(), 503);
    ///
    /// pool.warm().await?;
    /// assert_eq!(readiness.oneshot(()).await?.status(), 200);
    /// # Ok(()) }
    /// ```
    pub fn require_proven(mut self) -> Self {
        self.proven_only = true;
        self
    }

    fn accepts(&self, health: Health) -> bool {
        health.is_ready() && !(self.proven_only && health == Health::Unproven)
    }

    fn answer(&self) -> Response<Text> {
        let states: Vec<_> = self.pools.iter().map(|(name, ask)| (name, ask())).collect();
        let is_ready = states.iter().all(|(_, health)| self.accepts(*health));
        let pools: Vec<String> = states
            .iter()
            .map(|(name, health)| format!("{}:{}", quoted(name), quoted(&health.to_string())))
            .collect();
        let body = format!(r#"{{"ready":{is_ready},"pools":{{{}}}}}"#, pools.join(","));
        let status = match is_ready {
            true => StatusCode::OK,
            false => StatusCode::SERVICE_UNAVAILABLE,
        };
        json(status, body)
    }
}

impl<R> Service<R> for Readiness {
    type Response = Response<Text>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Text>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: R) -> Self::Future {
        ready(Ok(self.answer()))
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.pools.iter().map(|(name, _)| name);
        f.debug_set().entries(names).finish()
    }
}

/// A service that answers 200, whatever the pools are up to: restarting a process does not mend its database.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Liveness {}

impl Liveness {
    /// There is nothing to set.
    pub fn new() -> Self {
        Self {}
    }
}

impl<R> Service<R> for Liveness {
    type Response = Response<Text>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Text>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: R) -> Self::Future {
        ready(Ok(json(StatusCode::OK, String::from(r#"{"alive":true}"#))))
    }
}

/// Both probes as routes: `/livez` and `/readyz`.
///
/// ```
/// let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(())).build().unwrap();
/// let app: axum::Router = axum::Router::new().merge(cenote_tower::probes(cenote_tower::Readiness::new().pool(&pool)));
/// assert!(app.has_routes());
/// ```
#[cfg(feature = "axum")]
pub fn probes<S: Clone + Send + Sync + 'static>(readiness: Readiness) -> axum::Router<S> {
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
