//! Which requests may change a pool, and what they do.

use axum::Router;
use axum::http::Request;
use axum::http::request::Builder;
use cenote::breaker::BreakerState;
use cenote_dashboard::{Dashboard, Token};
use serde_json::json;

use super::rig::{AnyPool, Read, TOKEN, get, pool, send};

fn app() -> Router {
    let token = Token::new(TOKEN).unwrap();
    Dashboard::new().actions(token).routes()
}

fn request(pool: &AnyPool, action: &str) -> Builder {
    let path = format!("/api/pools/{}/{action}", pool.number());
    Request::post(path).header("host", "ops.example.com")
}

async fn act(app: &Router, pool: &AnyPool, action: &str, body: &str) -> Read {
    let request = request(pool, action).header("x-cenote-token", TOKEN);
    send(app, request, body).await
}

#[tokio::test]
async fn no_action_is_possible_unless_the_code_allows_it() {
    let pool = pool("actions off", 2);
    let app: Router = Dashboard::new().routes();

    let read = act(&app, &pool, "suspend", "").await;

    assert_eq!(read.status.as_u16(), 403);
    assert_eq!(read.json(), json!({"error": "actions are off"}));
    assert!(!pool.is_suspended());
}

#[tokio::test]
async fn a_request_without_the_right_token_is_refused() {
    let (pool, app) = (pool("actions token", 2), app());
    let wrong = TOKEN.replace('0', "1");
    for (token, error) in [
        (None, "the token is missing"),
        (Some(""), "the token is wrong"),
        (Some(&TOKEN[1..]), "the token is wrong"),
        (Some(wrong.as_str()), "the token is wrong"),
    ] {
        let request = request(&pool, "suspend");
        let request = match token {
            Some(token) => request.header("x-cenote-token", token),
            None => request,
        };

        let read = send(&app, request, "").await;

        assert_eq!(read.status.as_u16(), 401, "{token:?}");
        assert_eq!(read.json(), json!({"error": error}));
    }
    let in_url = format!(
        "/api/pools/{}/suspend?token={TOKEN}&x-cenote-token={TOKEN}",
        pool.number()
    );
    assert_eq!(
        send(&app, Request::post(in_url), "").await.status.as_u16(),
        401
    );
    assert!(!pool.is_suspended());
}

#[tokio::test]
async fn a_request_from_another_site_is_refused_even_with_the_token() {
    let (pool, app) = (pool("actions origin", 2), app());
    for (name, value) in [
        ("origin", "https://evil.example.com"),
        ("origin", "null"),
        ("origin", "https://ops.example.com.evil.com"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "none"),
    ] {
        let request = request(&pool, "suspend").header("x-cenote-token", TOKEN);

        let read = send(&app, request.header(name, value), "").await;

        assert_eq!(read.status.as_u16(), 403, "{name}: {value}");
    }
    assert!(!pool.is_suspended());
}

#[tokio::test]
async fn a_request_from_the_page_itself_is_taken_even_behind_a_proxy() {
    let (pool, app) = (pool("actions own", 2), app());
    for headers in [
        [("origin", "https://ops.example.com"), ("accept", "*/*")],
        [
            ("origin", "https://public.example.com"),
            ("sec-fetch-site", "same-origin"),
        ],
    ] {
        pool.resume();
        let mut request = request(&pool, "suspend").header("x-cenote-token", TOKEN);
        for (name, value) in headers {
            request = request.header(name, value);
        }

        assert_eq!(send(&app, request, "").await.status.as_u16(), 200);
        assert!(pool.is_suspended(), "{headers:?}");
    }
}

#[tokio::test]
async fn another_site_gets_no_consent_to_send_the_header() {
    let (pool, app) = (pool("actions preflight", 2), app());
    let path = format!("/api/pools/{}/close", pool.number());
    let preflight = Request::options(path)
        .header("origin", "https://evil.example.com")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "x-cenote-token");

    let read = send(&app, preflight, "").await;

    assert_eq!(read.status.as_u16(), 405);
    assert!(
        !read
            .headers
            .keys()
            .any(|name| name.as_str().starts_with("access-control"))
    );
}

#[tokio::test]
async fn a_look_never_acts() {
    let (pool, app) = (pool("actions get", 2), app());
    let read = get(&app, &format!("/api/pools/{}/close", pool.number())).await;

    assert_eq!(read.status.as_u16(), 405);
    assert!(!pool.is_closed());
}

#[tokio::test]
async fn each_action_does_what_its_name_says() {
    let (pool, app) = (pool("actions all", 2), app());
    drop(pool.acquire().await.unwrap());

    let read = act(&app, &pool, "resize", r#"{"max_size": 5}"#).await;
    assert_eq!(read.json(), json!({"done": "resize to 5"}));
    assert_eq!(pool.status().max_size, 5);
    assert_eq!(act(&app, &pool, "invalidate", "").await.status, 200);
    assert_eq!(pool.status().closes.total(), 1);
    assert_eq!(act(&app, &pool, "suspend", "").await.status, 200);
    assert!(pool.is_suspended());
    assert_eq!(act(&app, &pool, "resume", "").await.status, 200);
    assert!(!pool.is_suspended());
    for (action, state) in [
        ("trip-breaker", BreakerState::Inactive),
        ("probe-breaker", BreakerState::Recovering),
        ("reset-breaker", BreakerState::Active),
    ] {
        assert_eq!(act(&app, &pool, action, "").await.status, 200);
        assert_eq!(pool.breaker().state(), state);
    }
    assert_eq!(act(&app, &pool, "close", "").await.status, 200);
    assert!(pool.is_closed());

    let detail = get(&app, &format!("/api/pools/{}", pool.number()))
        .await
        .json();
    let events = detail["events"].as_array().unwrap().iter();
    let actions = events.filter(|one| one["kind"] == "action");
    let actions: Vec<_> = actions.map(|one| one["text"].as_str().unwrap()).collect();
    assert_eq!(actions[0], "resize to 5", "each is on the list of events");
    assert_eq!(actions.len(), 8);
}

#[tokio::test]
async fn an_action_that_cannot_be_done_says_why() {
    let (pool, app) = (pool("actions bad", 2), app());
    for (action, body, status, part) in [
        (
            "resize",
            r#"{"max_size": 0}"#,
            422,
            "`max_size` is 0, allowed: at least 1",
        ),
        ("resize", "", 422, "the body must be"),
        (
            "resize",
            r#"{"max_size": 3, "now": true}"#,
            422,
            "unknown field",
        ),
        ("explode", "", 404, "no such action: use resize"),
    ] {
        let read = act(&app, &pool, action, body).await;

        assert_eq!(read.status.as_u16(), status, "{action} {body}");
        let error = read.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains(part), "{error}");
    }
    let huge = "x".repeat(100_000);
    assert_eq!(act(&app, &pool, "resize", &huge).await.status.as_u16(), 413);
    let unknown = Request::post("/api/pools/999999/close").header("x-cenote-token", TOKEN);
    assert_eq!(send(&app, unknown, "").await.status.as_u16(), 404);
    assert_eq!(pool.status().max_size, 2);
}
