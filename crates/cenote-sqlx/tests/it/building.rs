//! The builder: URLs, settings and credentials.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cenote::Config;
use cenote::config::IdleOrder;
use cenote_sqlx::{BuildError, Credentials, Db};

use crate::world;

#[tokio::test]
async fn settings_in_the_url_override_the_builder() {
    let url = world::postgres::url();
    let url = format!(
        "{url}&cenote.max_size=7&application_name=by-url&cenote.acquire_timeout=1m%2030s&cenote.idle_timeout=off\
         &cenote.check_on_return=true&cenote.lifetime_jitter=0.5&cenote.idle_order=oldest&cenote.max_uses=9&cenote.name=by+url"
    );
    let db = Db::postgres(url).max_size(3).min_idle(1).build().unwrap();

    let expected = Config {
        name: Some("by url".into()),
        max_size: 7,
        min_idle: 1,
        acquire_timeout: Some(Duration::from_secs(90)),
        idle_timeout: None,
        check_on_return: true,
        lifetime_jitter: 0.5,
        idle_order: IdleOrder::Oldest,
        max_uses: Some(9),
        ..Config::default()
    };
    assert_eq!(db.pool().config(), expected);
    let name: String = sqlx::query_scalar("SELECT current_setting('application_name')")
        .fetch_one(&db)
        .await
        .unwrap();
    assert_eq!(name, "by-url", "other parameters go to the driver");
}

#[test]
fn a_wrong_setting_in_the_url_is_refused_by_name() {
    let refused = |parameter: &str| {
        let built = Db::sqlite(format!("sqlite://x?{parameter}")).build();
        let error = built.unwrap_err();
        assert!(matches!(error, BuildError::Parameter(_)), "{error:?}");
        error.to_string()
    };

    let unknown = refused("cenote.max_sice=3");
    assert!(
        unknown.contains("max_sice") && unknown.contains("`max_size`"),
        "{unknown}"
    );
    for (parameter, reason) in [
        ("cenote.max_size=many", "not a whole number"),
        (
            "cenote.min_idle=1&cenote.max_size=zero",
            "not a whole number",
        ),
        ("cenote.max_size=3&cenote.acquire_timeout=5", "duration"),
        ("cenote.idle_order=newest", "oldest"),
        ("cenote.check_on_return=maybe", "true or false"),
    ] {
        let text = refused(parameter);
        let pair = parameter.split('&').next_back().unwrap();
        let name = format!("`{}`: ", pair.split('=').next().unwrap());
        assert!(text.contains(&name) && text.contains(reason), "{text}");
    }
    let twice = refused("cenote.max_size=3&cenote.max_size=4");
    assert!(twice.contains("duplicate field `max_size`"), "{twice}");
    let small = Db::sqlite("sqlite://x?cenote.max_size=0")
        .build()
        .unwrap_err();
    assert!(
        matches!(&small, BuildError::Config(error) if error.field() == "max_size"),
        "{small}"
    );
}

#[test]
fn a_misspelled_parameter_of_the_driver_is_refused_by_name() {
    for (built, name) in [
        (
            Db::postgres("postgres://h/d?sslmod=require").build().err(),
            "sslmod",
        ),
        (
            Db::postgres("postgres://h/d?CENOTE.max_size=5")
                .build()
                .err(),
            "CENOTE.max_size",
        ),
        (
            Db::postgres("postgres://h/d?cenote%2Emax_size=3")
                .build()
                .err(),
            "cenote.max_size",
        ),
        (Db::mysql("mysql://h/d?useSSL=true").build().err(), "useSSL"),
        (Db::sqlite("sqlite://d?mod=rw").build().err(), "mod"),
    ] {
        let error = built.expect(name).to_string();
        assert!(error.contains(&format!("`{name}`")), "{error}");
    }
    let known = "postgres://h/d?sslmode=disable&options[search_path]=a&application_name=b";
    assert!(Db::postgres(known).build().is_ok());
    assert!(
        Db::mysql("mysql://h/d?ssl-mode=disabled&charset=utf8mb4")
            .build()
            .is_ok()
    );
}

#[tokio::test]
async fn a_host_can_be_an_ipv6_address() {
    let addresses = ("listen_addresses", "127.0.0.1,::1");
    let postgres = cenote_servers::postgres::start_with(&[addresses]).unwrap();
    let mysql = cenote_servers::mariadb::start_with(&[("bind-address", "::")]).unwrap();
    let six = |url: &str| {
        url.replace("127.0.0.1", "[::1]")
            .replace("localhost", "[::1]")
    };

    let db = Db::postgres(six(postgres.url()))
        .max_size(1)
        .build()
        .unwrap();
    let address: String = sqlx::query_scalar("SELECT host(inet_server_addr())")
        .fetch_one(&db)
        .await
        .unwrap();
    assert_eq!(address, "::1");
    let db = Db::mysql(six(mysql.url())).max_size(1).build().unwrap();
    sqlx::query("SELECT 1").execute(&db).await.unwrap();
}

#[test]
fn a_name_is_any_string_and_numbers_can_be_set_back_to_off() {
    let by_str = Db::sqlite("sqlite://x").name("by str").max_uses(5);
    let by_str = by_str.max_uses(None).max_waiters(3).build().unwrap();
    let by_string = Db::sqlite("sqlite://x").name(String::from("by string"));

    assert_eq!(by_str.pool().name(), "by str");
    let config = by_str.pool().config();
    assert_eq!((config.max_uses, config.max_waiters), (None, Some(3)));
    assert_eq!(by_string.build().unwrap().pool().name(), "by string");
}

#[test]
fn the_url_of_another_database_is_refused_with_the_expected_scheme() {
    let secret = "mysql://someone:secret-word@localhost/test";
    let refused = [
        Db::postgres(secret).build().unwrap_err(),
        Db::sqlite(secret).build().unwrap_err(),
        Db::mysql("postgres://localhost/test").build().unwrap_err(),
    ];
    let expected = [
        "the URL begins with `mysql:`: a URL of PostgreSQL begins with `postgres://` or `postgresql://`, for this one call `Db::mysql`",
        "the URL begins with `mysql:`: a URL of SQLite begins with `sqlite://`, for this one call `Db::mysql`",
        "the URL begins with `postgres:`: a URL of MySQL begins with `mysql://` or `mariadb://`, for this one call `Db::postgres`",
    ];
    for (error, expected) in refused.iter().zip(expected) {
        assert!(matches!(error, BuildError::Scheme { .. }), "{error:?}");
        assert_eq!(error.to_string(), expected);
    }

    assert!(Db::mysql("mariadb://localhost/test").build().is_ok());
    assert!(Db::postgres("postgresql://localhost/test").build().is_ok());
    for file in ["sqlite:x.db", "x.db", "sqlite://x.db?cache=private"] {
        assert!(Db::sqlite(file).build().is_ok(), "{file}");
    }
}

#[test]
fn no_debug_text_and_no_error_shows_a_password() {
    let url = "postgres://someone:secret-word@localhost/test?cenote.max_size=2";
    let builder = Db::postgres(url);
    let mut shown = format!("{builder:?}");
    let db = builder.build().unwrap();
    shown += &format!("{db:?} {:?} {:?}", db.pool(), db.pool().manager());
    shown += &format!("{:?}", Credentials::new("someone", "secret-word"));
    let wrong = Db::postgres("postgres://someone:secret-word@localhost:port/test")
        .build()
        .unwrap_err();
    shown += &format!("{wrong} {wrong:?}");

    assert!(!shown.contains("secret-word"), "{shown}");
}

#[tokio::test]
async fn credentials_are_asked_for_at_every_open() {
    let asked = Arc::new(AtomicU32::new(0));
    let counter = asked.clone();
    let known = world::mysql::url();
    let (user, _) = known
        .trim_start_matches("mysql://")
        .split_once('@')
        .unwrap();
    let (user, password) = user.split_once(':').unwrap_or((user, ""));
    let credentials = Credentials::new(user, password);
    let url = world::as_user(&known, "unknown");
    let db = Db::mysql(url).max_size(2).credentials(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        let credentials = credentials.clone();
        async { Ok::<_, std::io::Error>(credentials) }
    });
    let db = db.build().unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 0);

    let (one, other) = (db.acquire().await.unwrap(), db.acquire().await.unwrap());

    assert_eq!(asked.load(Ordering::Relaxed), 2);
    drop((one, other));
}

#[tokio::test]
async fn the_error_of_a_provider_is_the_error_of_the_open() {
    let db = world::postgres::builder()
        .0
        .credentials(|| async { Err::<Credentials, _>("the vault is sealed") });
    let db = db.build().unwrap();

    let error = db.acquire().await.unwrap_err();

    assert!(error.to_string().contains("the vault is sealed"), "{error}");
}

#[test]
fn credentials_for_a_database_without_users_are_refused() {
    let db = Db::sqlite("sqlite://x")
        .credentials(|| async { Ok::<_, std::io::Error>(Credentials::new("a", "b")) });
    assert!(matches!(db.build(), Err(BuildError::NoCredentials)));
}

#[derive(Debug, Default)]
struct Counter(AtomicU32);

impl cenote::Observer for Counter {
    fn acquired(&self, _: &cenote::event::Acquired<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn an_observer_is_set_on_the_builder_of_the_pool() {
    let counter = Arc::new(Counter::default());
    let observer = counter.clone();
    let (builder, _home) = world::sqlite::builder();
    let db = builder
        .pool(move |pool| pool.observer(observer))
        .build()
        .unwrap();

    for _ in 0..3 {
        sqlx::query("SELECT 1").execute(&db).await.unwrap();
    }

    assert_eq!(counter.0.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_closed_pool_is_an_error_of_its_own() {
    let (builder, _home) = world::sqlite::builder();
    let db = builder.build().unwrap();
    db.pool().close();

    let error = sqlx::query("SELECT 1").execute(&db).await.unwrap_err();

    assert!(matches!(error, sqlx::Error::PoolClosed), "{error:?}");
}

#[test]
fn a_url_of_another_database_is_refused_with_the_right_constructor() {
    let refused = [
        (Db::postgres("mysql://h/d").build().err(), "Db::mysql"),
        (Db::postgres("mariadb://h/d").build().err(), "Db::mysql"),
        (Db::postgres("sqlite::memory:").build().err(), "Db::sqlite"),
        (Db::mysql("postgresql://h/d").build().err(), "Db::postgres"),
        (Db::mysql("sqlite:shop.db").build().err(), "Db::sqlite"),
        (Db::sqlite("postgres://h/d").build().err(), "Db::postgres"),
        (Db::sqlite("mysql:h").build().err(), "Db::mysql"),
    ];
    for (error, right) in refused {
        let error = error.expect(right);
        assert!(matches!(error, BuildError::Scheme { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.ends_with(&format!("call `{right}`")), "{text}");
    }
    let unknown = Db::postgres("oracle://h/d").build().unwrap_err();
    assert!(
        unknown.to_string().ends_with("`postgresql://`"),
        "{unknown}"
    );
    assert!(Db::sqlite("a file: with a colon.db").build().is_ok());
}

#[test]
fn a_fragment_is_not_part_of_a_setting() {
    let db = Db::postgres("postgres://h/d?cenote.max_size=5#frag");
    assert_eq!(db.build().unwrap().pool().config().max_size, 5);
    let db = Db::mysql("mysql://h/d?cenote.max_size=6&charset=utf8mb4#frag");
    assert_eq!(db.build().unwrap().pool().config().max_size, 6);
}
