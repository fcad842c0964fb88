//! What a pool refuses to be built from.

use cenote_mysql::mysql_async::{OptsBuilder, PoolConstraints, PoolOpts};
use cenote_mysql::{BuildError, Pool};

#[test]
fn options_of_the_drivers_own_pool_are_refused() {
    for option in [
        "pool_min=1",
        "pool_max=5",
        "inactive_connection_ttl=5",
        "ttl_check_interval=5",
        "conn_ttl=5",
        "abs_conn_ttl=5",
        "abs_conn_ttl_jitter=5",
        "reset_connection=false",
    ] {
        let url = format!("mysql://app@localhost/shop?tcp_nodelay=true&{option}");
        let error = Pool::from_url(url).build().unwrap_err();
        assert!(
            matches!(error, BuildError::PoolOption { .. }),
            "{option}: {error}"
        );
    }

    let pool = PoolOpts::default().with_constraints(PoolConstraints::new(1, 2).unwrap());
    let options = OptsBuilder::default().pool_opts(pool);
    let error = Pool::with_options(options).build().unwrap_err();
    assert!(matches!(error, BuildError::PoolOption { .. }), "{error}");
}

#[test]
fn a_wrong_url_is_refused_and_the_text_says_why() {
    for (url, why) in [
        ("mysql://localhost?max_size=5", "max_size"),
        ("postgres://localhost", "postgres"),
        ("mysql://localhost?tcp_nodelay=perhaps", "perhaps"),
        ("nonsense", "URL"),
    ] {
        let error = Pool::from_url(url).build().unwrap_err();
        assert!(matches!(error, BuildError::Url(_)), "{url}: {error}");
        assert!(error.to_string().contains(why), "{url}: {error}");
    }
}

#[test]
fn a_wrong_setting_of_the_pool_is_refused() {
    let error = Pool::from_url("mysql://localhost")
        .max_size(0)
        .build()
        .unwrap_err();
    assert!(matches!(error, BuildError::Config(_)));
    assert!(error.to_string().contains("max_size"), "{error}");
}
