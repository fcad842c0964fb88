//! What a request with the token may do to a pool, and which requests may not.

use axum::http::{HeaderMap, StatusCode, Uri, header};
use serde::Deserialize;

use cenote::registry::AnyPool;

use crate::guard::host;
use crate::token::Token;

/// A page of another site cannot send this header without the consent of this server, which never
/// gives it.
pub(crate) const TOKEN_HEADER: &str = "x-cenote-token";

/// Why an action was refused.
pub(crate) type Refused = (StatusCode, String);

/// Returns an error unless the request comes from this page or from no page, and has the token.
pub(crate) fn check(token: Option<&Token>, headers: &HeaderMap, uri: &Uri) -> Result<(), Refused> {
    let refuse = |status, text: &str| Err((status, text.to_owned()));
    let Some(token) = token else {
        return refuse(StatusCode::FORBIDDEN, "actions are off");
    };
    if !is_own(headers, uri) {
        return refuse(StatusCode::FORBIDDEN, "the request comes from another site");
    }
    let shown = headers.get(TOKEN_HEADER).map(|shown| shown.as_bytes());
    match shown {
        None => refuse(StatusCode::UNAUTHORIZED, "the token is missing"),
        Some(shown) if !token.matches(shown) => {
            refuse(StatusCode::UNAUTHORIZED, "the token is wrong")
        }
        Some(_) => Ok(()),
    }
}

/// Browsers say where a request comes from, and pages cannot change these headers. A program sends
/// neither of them. `Sec-Fetch-Site` is right even behind a proxy that changes the host, but
/// browsers send it over TLS and to loopback only. Otherwise the origin must be the host.
fn is_own(headers: &HeaderMap, uri: &Uri) -> bool {
    let text = |name| headers.get(name).map(|it| it.to_str().unwrap_or_default());
    if let Some(site) = text("sec-fetch-site") {
        return site == "same-origin";
    }
    let Some(origin) = text(header::ORIGIN.as_str()) else {
        return true;
    };
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    let host = host(headers, uri);
    authority.is_some_and(|it| host.is_some_and(|host| it.eq_ignore_ascii_case(host)))
}

/// The body of a resize.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resize {
    max_size: usize,
}

/// Does an action by its name. Returns what was done, in words.
pub(crate) fn act(pool: &AnyPool, action: &str, body: &[u8]) -> Result<String, Refused> {
    match action {
        "resize" => return resize(pool, body),
        "invalidate" => pool.invalidate(),
        "suspend" => pool.suspend(),
        "resume" => pool.resume(),
        "trip-breaker" => pool.trip_breaker(),
        "probe-breaker" => pool.probe_breaker(),
        "reset-breaker" => pool.reset_breaker(),
        "close" => pool.close(),
        _ => {
            let text = "no such action: use resize, invalidate, suspend, resume, trip-breaker, \
                probe-breaker, reset-breaker or close";
            return Err((StatusCode::NOT_FOUND, text.to_owned()));
        }
    }
    Ok(action.to_owned())
}

fn resize(pool: &AnyPool, body: &[u8]) -> Result<String, Refused> {
    let bad = |text: String| (StatusCode::UNPROCESSABLE_ENTITY, text);
    let Resize { max_size } = serde_json::from_slice(body)
        .map_err(|error| bad(format!("the body must be {{\"max_size\": N}}: {error}")))?;
    match pool.resize(max_size) {
        Some(Ok(())) => Ok(format!("resize to {max_size}")),
        Some(Err(error)) => Err(bad(error.to_string())),
        None => Err((StatusCode::NOT_FOUND, "the pool is gone".to_owned())),
    }
}
