//! The extractor `Leased`: a resource of any pool as an argument of a handler.

use std::fmt;
use std::ops::{Deref, DerefMut};

use axum::extract::{FromRef, FromRequestParts};
use cenote::scope::Bound;
use cenote::status::UNKNOWN_SITE;
use cenote::{Lease, Manager, Pool};
use http::request::Parts;

use crate::asked::Asked;
use crate::problem::Problem;

/// A resource of the pool that is in the state of the router, [bound](Pool::bind) for this request
/// and labelled with it. It derefs to the resource. If the pool has nothing to lend, the response
/// is a 503.
///
/// It is taken before the body of the request is read. A handler that also reads a slow upload
/// holds it meanwhile: let such a handler take the pool, and bind when the body is there.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use axum::{Router, routing::get};
/// use cenote::{Closures, Pool};
/// use cenote_tower::Leased;
/// use http::Request;
/// use tower::ServiceExt;
///
/// async fn visit(mut room: Leased<Closures<Vec<u8>>>) -> String {
///     room.push(1);
///     room.len().to_string()
/// }
///
/// let pool = Pool::from_fn(async || Ok::<_, std::io::Error>(Vec::new())).build()?;
/// let app: Router = Router::new().route("/", get(visit)).with_state(pool.clone());
/// let response = app.oneshot(Request::get("/").body(axum::body::Body::empty())?).await?;
/// assert_eq!(response.status(), 200);
/// assert_eq!(pool.status().idle, 1);
/// # Ok(()) }
/// ```
///
/// # Cancel safety
/// Dropping the extractor gives up its place in the queue of the pool.
pub struct Leased<M: Manager + 'static>(Bound<M>);

impl<M: Manager + 'static> Leased<M> {
    /// Returns the bound lease, which can be pinned or discarded.
    pub fn into_inner(self) -> Bound<M> {
        self.0
    }
}

impl<M, S> FromRequestParts<S> for Leased<M>
where
    M: Manager<Error: fmt::Debug> + 'static,
    Pool<M>: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let pool = Pool::<M>::from_ref(state);
        let bound = pool.bind_at(UNKNOWN_SITE, None).await?;
        let asked = Asked::new(&parts.method, &parts.uri, &parts.extensions);
        Lease::label(&bound, asked.to_string());
        Ok(Self(bound))
    }
}

impl<M: Manager + 'static> Deref for Leased<M> {
    type Target = M::Resource;

    fn deref(&self) -> &M::Resource {
        &self.0
    }
}

impl<M: Manager + 'static> DerefMut for Leased<M> {
    fn deref_mut(&mut self) -> &mut M::Resource {
        &mut self.0
    }
}

impl<M: Manager + 'static> fmt::Debug for Leased<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Leased").field(&self.0).finish()
    }
}
