//! Headers of every response, and the check of the host of every request.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;

use crate::routes::refusal;
use crate::sampler::Shared;

/// Everything comes from this server, and nothing on the page is markup that was not in its files:
/// a browser refuses inline scripts and styles, frames, forms, and texts that become HTML.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
];

/// Refuses a request to a host that is not expected, and adds the headers to every response.
pub(crate) async fn guard(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match is_expected(&shared, &request) {
        true => next.run(request).await,
        false => refusal(
            StatusCode::MISDIRECTED_REQUEST,
            "this host is not on the list of hosts",
        ),
    };
    for (name, value) in HEADERS {
        let value = axum::http::HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

fn is_expected(shared: &Shared, request: &Request) -> bool {
    let hosts = &shared.settings.hosts;
    let host = host(request.headers(), request.uri());
    hosts.is_empty() || host.is_some_and(|host| hosts.iter().any(|one| is_same(one, host)))
}

/// Returns the host of a request, with its port if it has one.
pub(crate) fn host<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    let header = headers.get(header::HOST).and_then(|it| it.to_str().ok());
    header.or_else(|| uri.authority().map(|authority| authority.as_str()))
}

/// A host without a port stands for all ports.
fn is_same(expected: &str, host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, port)| {
        let is_port = port.bytes().all(|letter| letter.is_ascii_digit());
        if is_port { name } else { host }
    });
    expected.eq_ignore_ascii_case(host) || expected.eq_ignore_ascii_case(name)
}
