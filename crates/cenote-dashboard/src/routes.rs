//! The routes: the page, its files, the JSON, the streams, the traces and the actions.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, OriginalUri, Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;

use crate::actions::{act, check};
use crate::assets;
use crate::guard::guard;
use crate::sampler::{NoStream, Shared};
use crate::trace::trace;
use crate::watched::Past;

/// The body of an action is one number.
const LONGEST_BODY: usize = 1024;

pub(crate) fn routes<S: Clone + Send + Sync + 'static>(shared: Arc<Shared>) -> Router<S> {
    Router::new()
        .route("/", get(enter))
        .route("/live", get(page))
        .route("/assets/{file}", get(asset))
        .route("/api/pools", get(pools))
        .route("/api/pools/{number}", get(pool))
        .route("/api/pools/{number}/trace", get(trace))
        .route("/api/pools/{number}/{action}", post(action))
        .route("/api/events", get(events))
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .layer(from_fn_with_state(Arc::clone(&shared), guard))
        .with_state(shared)
}

/// Leads to the page. Its URLs are relative, so its own address must end in the right folder,
/// wherever the routes are mounted.
async fn enter(OriginalUri(uri): OriginalUri) -> Response {
    let folder = uri.path().rsplit('/').next().unwrap_or_default();
    let to = match folder {
        "" => "./live".to_owned(),
        folder => format!("./{folder}/live"),
    };
    match HeaderValue::try_from(to) {
        Ok(to) => (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to)]).into_response(),
        Err(_) => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn page() -> Response {
    file("live.html")
}

async fn asset(Path(name): Path<String>) -> Response {
    file(&name)
}

fn file(name: &str) -> Response {
    match assets::find(name) {
        Some((kind, text)) => ([(header::CONTENT_TYPE, kind)], text).into_response(),
        None => refusal(StatusCode::NOT_FOUND, "no such file"),
    }
}

async fn pools(State(shared): State<Arc<Shared>>) -> Response {
    shared.keep_running();
    json(StatusCode::OK, &shared.overview(0, Past::All))
}

async fn pool(State(shared): State<Arc<Shared>>, Path(number): Path<String>) -> Response {
    shared.keep_running();
    let number = number.parse().ok();
    match number.and_then(|number| shared.detail(number, 0)) {
        Some(detail) => json(StatusCode::OK, &detail),
        None => refusal(StatusCode::NOT_FOUND, "no such pool"),
    }
}

/// `?pool=N` is the stream of one pool.
async fn events(State(shared): State<Arc<Shared>>, uri: Uri) -> Response {
    shared.keep_running();
    let pool = match uri.query().unwrap_or_default() {
        "" => None,
        query => match query.strip_prefix("pool=").and_then(|it| it.parse().ok()) {
            Some(number) => Some(number),
            None => return refusal(StatusCode::BAD_REQUEST, "the query must be `pool=N`"),
        },
    };
    match shared.subscribe(pool) {
        Ok((client, first)) => {
            let headers = [
                (header::CONTENT_TYPE.as_str(), "text/event-stream"),
                // A proxy must not collect frames.
                ("x-accel-buffering", "no"),
            ];
            (headers, client.into_body(first)).into_response()
        }
        Err(no) => no_stream(no),
    }
}

pub(crate) fn no_stream(no: NoStream) -> Response {
    match no {
        NoStream::NoPool => refusal(StatusCode::NOT_FOUND, "no such pool"),
        NoStream::Ended => refusal(StatusCode::SERVICE_UNAVAILABLE, "the page was ended"),
        NoStream::Full => {
            let full = refusal(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many pages are open: raise `max_clients`",
            );
            ([(header::RETRY_AFTER, "5")], full).into_response()
        }
    }
}

#[derive(Serialize)]
struct Done {
    done: String,
}

async fn action(
    State(shared): State<Arc<Shared>>,
    Path((number, action)): Path<(String, String)>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if let Err((status, text)) = check(shared.settings.token.as_ref(), &headers, &uri) {
        return refusal(status, &text);
    }
    let number = number.parse().ok();
    let Some(watched) = number.and_then(|number| shared.find(number)) else {
        return refusal(StatusCode::NOT_FOUND, "no such pool");
    };
    match act(&watched.pool, &action, &body) {
        Ok(done) => {
            watched.recorder.acted(done.clone());
            shared.refresh();
            json(StatusCode::OK, &Done { done })
        }
        Err((status, text)) => refusal(status, &text),
    }
}

#[derive(Serialize)]
struct Refusal<'a> {
    error: &'a str,
}

pub(crate) fn refusal(status: StatusCode, error: &str) -> Response {
    json(status, &Refusal { error })
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(text) => {
            let kind = [(header::CONTENT_TYPE, "application/json")];
            (status, kind, Body::from(text)).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
