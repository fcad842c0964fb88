//! Does an answer undo the work that led to it?

use http::{Response, StatusCode};

/// Does this response roll its transaction back? By its status: 4xx and 5xx do.
///
/// ```
/// use http::Response;
///
/// let mut response = Response::new(());
/// assert!(!cenote_tower::rolls_back(&response));
/// *response.status_mut() = http::StatusCode::CONFLICT;
/// assert!(cenote_tower::rolls_back(&response));
/// ```
pub fn rolls_back<B>(response: &Response<B>) -> bool {
    status_rolls_back(response.status())
}

/// As [`rolls_back`], for a status.
pub fn status_rolls_back(status: StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}
