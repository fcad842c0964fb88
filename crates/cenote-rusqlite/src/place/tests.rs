//! Which URL leads where.

use super::*;

fn read(url: &str) -> Place {
    Place::read(url).unwrap()
}

#[test]
fn a_name_is_taken_as_it_is() {
    for name in ["shop.db", "/var/lib/shop.db", "a?b=c.db", "C:\\shop.db"] {
        assert_eq!(read(name), Place::File(PathBuf::from(name)));
    }
}

#[test]
fn a_url_becomes_a_uri_of_sqlite() {
    for (url, uri) in [
        ("file:shop.db", "file:shop.db"),
        ("file:/srv/shop.db?mode=ro", "file:/srv/shop.db?mode=ro"),
        ("sqlite:shop.db", "file:shop.db"),
        ("sqlite://shop.db?mode=rw", "file:shop.db?mode=rw"),
        ("sqlite:///srv/shop.db", "file:/srv/shop.db"),
    ] {
        assert_eq!(read(url), Place::Uri(uri.to_owned()), "{url}");
    }
}

#[test]
fn each_database_in_memory_is_another_one() {
    let urls = [
        "",
        ":memory:",
        "file::memory:",
        "sqlite::memory:",
        "sqlite://:memory:",
        "file:name?mode=memory",
        "file:name?vfs=memdb",
    ];
    let mut places: Vec<Place> = urls.into_iter().map(read).collect();

    assert!(places.iter().all(Place::is_in_memory), "{places:?}");
    places.dedup();
    assert_eq!(places.len(), urls.len());
}

#[test]
fn a_shared_database_in_memory_keeps_its_name() {
    let url = "file:/carts?vfs=memdb";

    assert_eq!(read(url), Place::Memory(url.to_owned()));
}

#[test]
fn what_would_be_misunderstood_is_refused() {
    let scheme = Place::read("postgres://localhost/shop").unwrap_err();
    let parameter = Place::read("file:shop.db?mode=rw&cenote.max_size=3").unwrap_err();
    let shared = Place::read("file:shop?mode=memory&cache=shared").unwrap_err();

    assert!(scheme.to_string().contains("`postgres://`"), "{scheme}");
    assert!(parameter.to_string().contains("max_size=3"), "{parameter}");
    assert!(shared.to_string().contains("vfs=memdb"), "{shared}");
}

#[test]
fn threads_are_named_after_the_file() {
    assert_eq!(read("/srv/shop.db").short_name(), "shop.db");
    assert_eq!(read("file:/srv/shop.db?mode=ro").short_name(), "shop.db");
}
