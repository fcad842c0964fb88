//! The label of the leases of a request.

use actix_web::dev::ServiceRequest;

/// Longer paths are cut off. A route is never that long.
const LONGEST: usize = 120;

/// Returns the method and the route of a request, or the path if no route matches.
pub(crate) fn label(request: &ServiceRequest) -> String {
    let route = request.match_pattern();
    let route = route.as_deref().unwrap_or_else(|| {
        let path = request.path();
        path.get(..LONGEST).unwrap_or(path)
    });
    format!("{} {route}", request.method())
}
