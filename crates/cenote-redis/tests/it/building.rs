//! Building a pool, from URLs and from data.

use std::time::Duration;

use cenote_redis::{BuildError, Config, Pool};
use redis::AsyncCommands;

use crate::patient;

#[test]
fn a_config_is_read_and_written() {
    let file = r#"
        url = "redis://localhost/1"
        mux = 3
        lane_depth = 7
        response_timeout = "250ms"

        [pool]
        name = "carts"
        max_size = 4
        acquire_timeout = "2s"
    "#;

    let config: Config = toml::from_str(file).unwrap();

    assert_eq!((config.mux, config.lane_depth), (3, 7));
    assert_eq!(config.response_timeout, Some(Duration::from_millis(250)));
    let again: Config = toml::from_str(&toml::to_string(&config).unwrap()).unwrap();
    assert_eq!(again, config);
    let pool = Pool::from_config(config).build().unwrap();
    assert_eq!(pool.pool().name(), "carts");
    assert_eq!(pool.pool().annex().unwrap().name(), "carts (lanes)");
}

#[test]
fn a_wrong_config_is_refused() {
    let off: Config = toml::from_str("response_timeout = \"off\"").unwrap();
    assert_eq!(off.response_timeout, None);
    let wrong = toml::from_str::<Config>("response_timeout = \"soon\"").unwrap_err();
    assert!(wrong.to_string().contains("`soon`"), "{wrong}");
    let unknown = toml::from_str::<Config>("muxes = 1").unwrap_err();
    assert!(unknown.to_string().contains("muxes"), "{unknown}");
}

#[test]
fn wrong_values_are_refused_by_name() {
    let wrong = |builder: cenote_redis::Builder| builder.build().unwrap_err().to_string();

    assert!(wrong(Pool::from_url("redis://x").max_size(0)).contains("`max_size`"));
    assert!(wrong(Pool::from_url("redis://x").lane_depth(0)).contains("`lane_depth`"));
    assert!(wrong(Pool::from_url("redis://x/?max_size=3")).contains("`max_size`"));
    assert!(wrong(Pool::from_url("rediss://x/#insecure")).contains("root_certificates"));
    assert!(wrong(Pool::from_url("rediss://x").root_certificates("nothing")).contains("PEM"));
    assert!(matches!(
        Pool::from_url("what").build().unwrap_err(),
        BuildError::Url(_)
    ));
    assert!(matches!(
        Pool::from_url("redis://x/db").build().unwrap_err(),
        BuildError::Url(_)
    ));
}

#[test]
fn building_needs_no_runtime() {
    let pool = Pool::from_url("redis://localhost").build().unwrap();

    assert_eq!(pool.status().opened, 0);
}

#[tokio::test]
async fn a_unix_socket_is_reached() {
    let folder = tempfile::tempdir().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), mode).unwrap();
    let socket = folder.path().join("redis.sock");
    let socket = socket.to_str().unwrap();
    let settings = [("unixsocket", socket), ("unixsocketperm", "777")];
    let _server = cenote_servers::redis::start_with(&settings).unwrap();
    let mut pool = patient(&format!("redis+unix://{socket}?db=2"))
        .build()
        .unwrap();

    let () = pool.set("k", "v").await.unwrap();
    let value: String = pool.acquire().await.unwrap().get("k").await.unwrap();

    assert_eq!(value, "v");
}
