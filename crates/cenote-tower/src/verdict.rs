//! Which responses roll back.

use http::{Response, StatusCode};

/// Returns whether this response rolls its transaction back: a status of 4xx or 5xx does.
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

/// Returns whether this status rolls a transaction back: 4xx and 5xx do.
///
/// ```
/// use cenote_tower::status_rolls_back;
/// use http::StatusCode;
///
/// assert!(status_rolls_back(StatusCode::NOT_FOUND) && !status_rolls_back(StatusCode::CREATED));
/// ```
pub fn status_rolls_back(status: StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}
