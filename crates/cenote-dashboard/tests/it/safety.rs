//! Headers, hosts, addresses, and names that are code.

use axum::Router;
use axum::http::Request;
use cenote_dashboard::Dashboard;

use super::rig::{entry, get, pool, send};

#[tokio::test]
async fn every_response_has_the_headers_that_keep_a_browser_safe() {
    let app: Router = Dashboard::new().routes();
    for path in [
        "/",
        "/live",
        "/assets/main.js",
        "/api/pools",
        "/assets/none",
        "/api/pools/0",
    ] {
        let read = get(&app, path).await;

        let header = |name: &str| read.headers[name].to_str().unwrap().to_owned();
        let policy = header("content-security-policy");
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        ] {
            assert!(policy.contains(part), "{path} has no {part}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert_eq!(header("x-frame-options"), "DENY");
        assert_eq!(header("cache-control"), "no-store");
        assert!(!read.headers.contains_key("set-cookie"));
        assert!(!read.headers.contains_key("access-control-allow-origin"));
    }
}

#[tokio::test]
async fn files_have_their_types() {
    let app: Router = Dashboard::new().routes();
    for (path, kind) in [
        ("/live", "text/html; charset=utf-8"),
        ("/assets/main.js", "text/javascript; charset=utf-8"),
        ("/assets/base.css", "text/css; charset=utf-8"),
        ("/assets/icon.svg", "image/svg+xml"),
        ("/api/pools", "application/json"),
    ] {
        assert_eq!(
            get(&app, path).await.headers["content-type"],
            kind,
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_page_is_found_wherever_it_is_mounted() {
    let routes = || Dashboard::new().routes();
    let nested: Router = Router::new().nest("/a/pools", routes());
    let service: Router = Router::new().nest_service("/ops", routes());
    let alone: Router = routes();
    for (app, from, to) in [
        (&nested, "/a/pools", "./pools/live"),
        (&service, "/ops", "./ops/live"),
        (&service, "/ops/", "./live"),
        (&alone, "/", "./live"),
    ] {
        let read = get(app, from).await;
        assert_eq!(
            (
                read.status.as_u16(),
                read.headers["location"].to_str().unwrap()
            ),
            (307, to)
        );
    }
    for (app, path) in [
        (&nested, "/a/pools/live"),
        (&service, "/ops/live"),
        (&alone, "/live"),
    ] {
        let page = get(app, path).await;
        assert!(page.text().contains("assets/main.js"), "{path}");
        assert!(!page.text().contains("=\"/"), "an address is not relative");
    }
}

#[tokio::test]
async fn a_foreign_host_is_refused_if_hosts_are_listed() {
    let app: Router = Dashboard::new()
        .host("ops.example.com")
        .host("localhost:3000")
        .routes();
    for (host, status) in [
        ("ops.example.com", 200),
        ("OPS.example.com:8080", 200),
        ("localhost:3000", 200),
        ("localhost:4000", 421),
        ("evil.example.com", 421),
        ("ops.example.com.evil.com", 421),
    ] {
        let request = Request::get("/api/pools").header("host", host);
        assert_eq!(
            send(&app, request, "").await.status.as_u16(),
            status,
            "{host}"
        );
    }
    assert_eq!(
        get(&app, "/api/pools").await.status.as_u16(),
        421,
        "no host"
    );
}

#[tokio::test]
async fn a_pool_named_like_a_script_is_data() {
    let name = "<script>alert(1)</script>";
    let pool = pool(name, 1);
    let app: Router = Dashboard::new().routes();

    assert_eq!(entry(&app, &pool).await["name"], name);
    let page = get(&app, "/live").await;
    assert!(
        !page.text().contains("alert(1)"),
        "the page itself has no data"
    );
}
