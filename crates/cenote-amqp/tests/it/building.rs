//! Building a pool: settings, wrong values, and no password in any text.

use cenote_amqp::{BuildError, Config, Pool};

const SECRET: &str = "secret-word";

#[tokio::test]
async fn a_wrong_value_is_refused_by_name() {
    for url in ["localhost", "http://localhost", "amqp:secret-word"] {
        let error = Pool::from_url(url).build().unwrap_err();
        assert!(matches!(error, BuildError::Url), "{url}");
        assert!(!format!("{error} {error:?}").contains(SECRET));
    }
    for count in [0, 70_000] {
        let error = Pool::from_url("amqp://localhost").channels_per_connection(count);
        let error = error.build().unwrap_err();
        assert!(error.to_string().contains("channels_per_connection"));
    }
    let error = Pool::from_url("amqp://localhost").max_size(0).build();
    assert!(error.unwrap_err().to_string().contains("max_size"));
}

#[tokio::test]
async fn settings_are_read_from_a_file_and_written_back() {
    let file = "url = 'amqp://localhost'\nchannels_per_connection = 3\n[pool]\nmax_size = 10";
    let config: Config = toml::from_str(file).unwrap();
    let again: Config = toml::from_str(&toml::to_string(&config).unwrap()).unwrap();
    assert_eq!(config, again);
    assert!(toml::from_str::<Config>("chanels = 3").is_err());

    let pool = Pool::from_config(config).build().unwrap();

    assert_eq!(pool.status().max_size, 10);
    assert_eq!(pool.connections().status().max_size, 4);
}

#[tokio::test]
async fn no_text_contains_the_password() {
    let url = format!("amqp://guest:{SECRET}@127.0.0.1:1");
    let config = Config {
        url: url.clone(),
        ..Config::default()
    };
    let builder = Pool::from_url(&url);
    let pool = Pool::from_url(&url).build().unwrap();

    let error = pool.acquire().await.unwrap_err();

    let connections = pool.connections();
    let texts = format!(
        "{config:?} {builder:?} {pool:?} {connections:?} {:?} {:?} {error} {error:?}",
        pool.manager(),
        connections.manager()
    );
    assert!(!texts.contains(SECRET), "{texts}");
}

#[tokio::test]
async fn a_wrong_password_is_said_and_not_shown() {
    let (_, server) = crate::url().rsplit_once('@').unwrap();
    let url = format!("amqp://guest:{SECRET}@{server}");
    let pool = crate::builder_at(&url, 1).build().unwrap();

    let error = pool.acquire().await.unwrap_err();

    let text = format!("{error} {error:?}");
    assert!(text.contains("refused") && !text.contains(SECRET), "{text}");
}

#[tokio::test]
async fn tls_without_the_feature_of_the_driver_is_an_error() {
    let url = crate::url().replacen("amqp://", "amqps://", 1);
    let pool = crate::builder_at(&url, 1).build().unwrap();

    let error = pool.acquire().await.unwrap_err().to_string();

    assert!(error.contains("no TLS"), "{error}");
}
