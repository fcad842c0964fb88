//! The request that a problem or a lease belongs to: its method and its route.

use std::cell::RefCell;
use std::fmt;
use std::mem;

use cenote::scope::Scope;
use http::{Extensions, Method, Request, Uri};

/// Longer paths are cut off. A route is never that long.
const LONGEST: usize = 120;

/// The method and the route of a request. It is made for every request, and so allocates nothing.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    method: Method,
    route: Route,
}

#[derive(Clone, Debug)]
enum Route {
    #[cfg(feature = "axum")]
    Matched(axum::extract::MatchedPath),
    /// The request was not routed by axum.
    Path(Uri),
}

impl Asked {
    pub(crate) fn of<R>(request: &Request<R>) -> Self {
        Self::new(request.method(), request.uri(), request.extensions())
    }

    pub(crate) fn new(method: &Method, uri: &Uri, extensions: &Extensions) -> Self {
        Self {
            method: method.clone(),
            route: Route::of(uri, extensions),
        }
    }

    pub(crate) fn method(&self) -> &Method {
        &self.method
    }

    pub(crate) fn route(&self) -> &str {
        match &self.route {
            #[cfg(feature = "axum")]
            Route::Matched(path) => path.as_str(),
            Route::Path(uri) => {
                let path = uri.path();
                path.get(..LONGEST).unwrap_or(path)
            }
        }
    }
}

impl Route {
    #[cfg(feature = "axum")]
    fn of(uri: &Uri, extensions: &Extensions) -> Self {
        match extensions.get::<axum::extract::MatchedPath>() {
            Some(path) => Self::Matched(path.clone()),
            None => Self::Path(uri.clone()),
        }
    }

    #[cfg(not(feature = "axum"))]
    fn of(uri: &Uri, _: &Extensions) -> Self {
        Self::Path(uri.clone())
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.route())
    }
}

thread_local! {
    /// The request that is being polled, for the scope that it may open.
    static POLLED: RefCell<Option<Asked>> = const { RefCell::new(None) };
}

/// Makes a call during which [`open`] knows the request. The request is moved there and back,
/// because a label in words would be an allocation for every request.
pub(crate) fn during<T>(asked: &mut Option<Asked>, call: impl FnOnce() -> T) -> T {
    let outer = POLLED.replace(asked.take());
    let _back = Back { asked, outer };
    call()
}

/// Takes the request back, also if the call panics.
struct Back<'a> {
    asked: &'a mut Option<Asked>,
    outer: Option<Asked>,
}

impl Drop for Back<'_> {
    fn drop(&mut self) {
        *self.asked = POLLED.replace(mem::take(&mut self.outer));
    }
}

/// Opens a scope that is labelled with the request.
pub(crate) fn open() -> Scope {
    let label = POLLED.with_borrow(|asked| asked.as_ref().map(Asked::to_string));
    match label {
        Some(label) => Scope::new().labelled(label),
        None => Scope::new(),
    }
}

/// As [`open`], for a request that keeps one resource of each pool.
pub(crate) fn open_keeping() -> Scope {
    open().hold().one_lease()
}
