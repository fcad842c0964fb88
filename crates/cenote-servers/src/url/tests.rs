//! The promises of the small URL parser.

use super::Url;

#[test]
fn a_url_is_read_in_all_its_parts() {
    let url = Url::parse("postgres://me:p:w@db.example:5433/shop?sslmode=off").unwrap();

    assert_eq!(url.user, Some("me"));
    assert_eq!(url.password, Some("p:w"));
    assert_eq!((url.host, url.port), ("db.example", Some(5433)));
    assert_eq!(url.path, "shop");
}

#[test]
fn only_the_host_is_required() {
    let url = Url::parse("redis://localhost").unwrap();

    assert_eq!((url.host, url.port, url.path), ("localhost", None, ""));
    assert_eq!((url.user, url.password), (None, None));
    for wrong in ["localhost", "postgres:///db", "redis://localhost:many"] {
        assert!(Url::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn brackets_keep_an_address_together() {
    let url = Url::parse("mysql://root@[::1]:3306").unwrap();
    assert_eq!((url.host, url.port), ("::1", Some(3306)));

    let url = Url::parse("mysql://root@[::1]/").unwrap();
    assert_eq!((url.host, url.port), ("::1", None));
}
