//! Building: settings from code and from a file, and no secrets in any text.

use std::time::Duration;

use cenote_postgres::{BuildError, Config, Credentials, Pool, Reset, tokio_postgres};

use crate::{builder, text, url};

#[test]
fn settings_are_read_from_a_file() {
    let file = r#"
        url = "postgres://app:secret-word@localhost/shop"
        settings = ["set work_mem = '1MB'"]
        reset = { query = "discard all" }
        cancel_on_server = false
        statement_cache_capacity = 7

        [pool]
        name = "shop"
        max_size = 3
        idle_timeout = "off"
        acquire_timeout = "1s 500ms"
    "#;

    let config: Config = toml::from_str(file).unwrap();

    assert_eq!(config.reset, Reset::Query(String::from("discard all")));
    assert_eq!(
        (config.cancel_on_server, config.statement_cache_capacity),
        (false, 7)
    );
    assert!(!format!("{config:?}").contains("secret-word"));
    let pool = Pool::from_config(config).build().unwrap();
    let config = pool.config();
    assert_eq!(
        (pool.name(), config.max_size, config.idle_timeout),
        ("shop", 3, None)
    );
    assert_eq!(config.acquire_timeout, Some(Duration::from_millis(1500)));
    let unknown: Result<Config, _> = toml::from_str("urll = 'x'");
    assert!(unknown.is_err());
    let defaults: Config = toml::from_str("").unwrap();
    assert_eq!(defaults, Config::default());
}

#[test]
fn wrong_values_are_refused_with_their_names() {
    let url = Pool::from_url("postgres://app:secret-word@localhost/shop?nonsense=1");
    let error = url.build().unwrap_err();
    assert!(matches!(error, BuildError::Url(_)));
    assert!(error.to_string().contains("nonsense"), "{error}");
    assert!(!format!("{error} {error:?}").contains("secret-word"));

    let error = builder(0).build().unwrap_err();
    assert!(matches!(error, BuildError::Config(_)));
    assert!(error.to_string().contains("max_size"), "{error}");
}

#[tokio::test]
async fn a_password_is_in_no_text() {
    let url = "postgres://app:secret-word@127.0.0.1:1/shop";
    let builder = Pool::from_url(url).max_size(1);
    assert!(!format!("{builder:?}").contains("secret-word"));
    let pool = builder.build().unwrap();

    let error = pool.acquire().await.unwrap_err();

    let texts = format!("{error} {error:?} {pool:?} {:?}", pool.manager());
    assert!(!texts.contains("secret-word"), "{texts}");
}

#[tokio::test]
async fn the_drivers_options_and_asked_credentials_are_used() {
    let mut options: tokio_postgres::Config = url().parse().unwrap();
    options
        .application_name("cenote_pg_options")
        .user("nobody_at_all");
    let pool = Pool::with_options(options)
        .credentials(async || Ok::<_, std::io::Error>(Credentials::new("postgres", "any")))
        .build()
        .unwrap();

    let lease = pool.acquire().await.unwrap();

    assert_eq!(
        text(&lease, "show application_name").await,
        "cenote_pg_options"
    );
    assert_eq!(text(&lease, "select current_user::text").await, "postgres");
}
