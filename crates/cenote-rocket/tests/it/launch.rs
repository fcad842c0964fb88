//! Configurations, and launches that fail.

use std::path::Path;

use cenote_rocket::{BuildError, Pool, RocketManager, Settings};
use cenote_sqlx::Db;
use rocket::error::ErrorKind;
use rocket::fairing::{self, AdHoc};
use rocket::figment::Figment;
use rocket::figment::providers::{Format, Toml};
use rocket::{Build, Rocket};
use rocket_db_pools::{Database, Pool as _};
use sqlx::migrate::Migrator;
use sqlx::{Postgres, Sqlite};

use crate::rig::server;
use crate::server::{Orders, config};

#[derive(Database)]
#[database("files")]
struct Files(Pool<Db<Sqlite>>);

/// The settings of a database as Rocket passes them on.
fn settings(toml: &str) -> Figment {
    let defaults = "max_connections = 8\nconnect_timeout = 5\n";
    let of = |text: &str| Toml::string(&format!("[default]\n{text}")).nested();
    Figment::from(of(toml)).join(of(defaults))
}

async fn error_of<P: rocket_db_pools::Pool>(toml: &str) -> String {
    match P::init(&settings(toml)).await {
        Ok(_) => panic!("it was accepted: {toml}"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn all_settings_of_the_pool_and_those_of_rocket_are_read() {
    let home = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/a.db?mode=rwc", home.path().display());
    let toml = format!(
        "url = {url:?}\nmin_connections = 1\nidle_timeout = 120\nsettings = ['PRAGMA cache_size = -77']\n\
         pool.name = 'files'\npool.max_lifetime = '1h'\npool.max_uses = 'off'\npool.idle_order = 'oldest'"
    );

    let pool = Pool::<Db<Sqlite>>::init(&settings(&toml)).await.unwrap();

    let config = pool.pool().config();
    assert_eq!((config.max_size, config.min_size), (8, 1));
    assert_eq!(config.acquire_timeout.unwrap().as_secs(), 5);
    assert_eq!(config.idle_timeout.unwrap().as_secs(), 120);
    assert_eq!(config.max_lifetime.unwrap().as_secs(), 3600);
    assert_eq!(
        (config.name.as_deref(), config.max_uses),
        (Some("files"), None)
    );
    assert_eq!(config.idle_order, cenote::config::IdleOrder::Oldest);
    let db: &Db<Sqlite> = &pool;
    let size: i64 = sqlx::query_scalar("PRAGMA cache_size")
        .fetch_one(db)
        .await
        .unwrap();
    assert_eq!(size, -77);
}

#[tokio::test]
async fn the_table_of_the_pool_counts_more_than_the_names_of_rocket() {
    let toml = "url = 'sqlite::memory:'\nmax_connections = 9\nconnect_timeout = 9\n\
         pool.max_size = 1\npool.acquire_timeout = '2s'";

    let pool = Pool::<Db<Sqlite>>::init(&settings(toml)).await.unwrap();

    let config = pool.pool().config();
    assert_eq!(
        (config.max_size, config.acquire_timeout.unwrap().as_secs()),
        (1, 2)
    );
}

#[tokio::test]
async fn a_profile_of_rocket_counts() {
    let both = "[default]\nurl = 'sqlite::memory:'\nmax_connections = 9\nconnect_timeout = 5\n\
         [small.pool]\nmax_size = 1";
    let figment = Figment::from(Toml::string(both).nested()).select("small");

    let pool = Pool::<Db<Sqlite>>::init(&figment).await.unwrap();

    assert_eq!(pool.pool().config().max_size, 1);
}

#[tokio::test]
async fn an_error_names_the_setting() {
    let cases = [
        ("", "`url`"),
        ("url = 7", "`url`"),
        (
            "url = 'sqlite://a.db'\nmax_conections = 3",
            "`max_conections`",
        ),
        (
            "url = 'sqlite://a.db'\nmax_connections = 'many'",
            "`max_connections`",
        ),
        (
            "url = 'sqlite://a.db'\nmax_connections = 0",
            "`max_connections`",
        ),
        (
            "url = 'sqlite://a.db'\nmin_connections = 9",
            "`min_connections`",
        ),
        (
            "url = 'sqlite://a.db'\nconnect_timeout = 0",
            "`connect_timeout`",
        ),
        (
            "url = 'sqlite://a.db'\nconnect_timeout = '5s'",
            "`connect_timeout`",
        ),
        (
            "url = 'sqlite://a.db'\nextensions = ['rot13']",
            "`extensions`",
        ),
        ("url = 'sqlite://a.db'\nsettings = 3", "`settings`"),
        (
            "url = 'sqlite://a.db'\npool.max_size = 'many'",
            "`pool.max_size`",
        ),
        (
            "url = 'sqlite://a.db'\npool.max_lifetime = '1 year-ish'",
            "`pool.max_lifetime`",
        ),
        ("url = 'sqlite://a.db'\npool.max_sise = 3", "`max_sise`"),
        ("url = 'sqlite::memory:'", "`max_connections`"),
        ("url = 'postgres://localhost'", "`postgres:`"),
    ];

    for (toml, name) in cases {
        let text = error_of::<Pool<Db<Sqlite>>>(toml).await;
        assert!(text.contains(name), "{toml:?}: {text}");
        assert!(!text.contains("settings.rs"), "{text}");
    }
}

#[tokio::test]
async fn a_server_that_is_down_stops_the_launch() {
    let down = "url = 'postgres://postgres@127.0.0.1:1/postgres'\n";

    let text = error_of::<Pool<Db<Postgres>>>(down).await;
    assert!(text.contains("could not be warmed up"), "{text}");
    let text = error_of::<Pool<cenote_postgres::Pool>>(down).await;
    assert!(text.contains("could not be warmed up"), "{text}");

    let best_effort = format!("{down}pool.warm_up = 'best_effort'");
    let pool = Pool::<Db<Postgres>>::init(&settings(&best_effort)).await;
    assert!(pool.is_ok());
}

#[tokio::test]
async fn a_wrong_database_is_named_and_its_password_is_not() {
    let url = server().replace("postgres@", "postgres:geheim@");
    let url = url.rsplit_once('/').unwrap().0;
    let toml = format!("url = '{url}/no_such_database'");

    let text = error_of::<Pool<Db<Postgres>>>(&toml).await;

    assert!(text.contains("no_such_database"), "{text}");
    assert!(!text.contains("geheim"), "{text}");
}

#[tokio::test]
async fn a_wrong_configuration_fails_the_ignition() {
    let configs = [
        config(),
        config().merge(("databases.orders.url", "mysql://localhost/shop")),
        config()
            .merge(("databases.orders.url", server()))
            .merge(("databases.orders.pool.max_size", 0)),
    ];

    for config in configs {
        let rocket = rocket::custom(config).attach(Orders::init());
        let error = rocket.ignite().await.map(drop).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::FailedFairings(_)));
    }
}

#[tokio::test]
async fn two_databases_have_a_pool_each() {
    let config = config()
        .merge(("databases.orders.url", server()))
        .merge(("databases.files.url", "sqlite::memory:"))
        .merge(("databases.files.max_connections", 1));
    let rocket = rocket::custom(config)
        .attach(Orders::init())
        .attach(Files::init());

    let rocket = rocket.ignite().await.unwrap();

    assert_eq!(Files::fetch(&rocket).unwrap().pool().config().max_size, 1);
    assert!(Orders::fetch(&rocket).unwrap().pool().config().max_size >= 4);
}

async fn migrate(rocket: Rocket<Build>) -> fairing::Result {
    let Some(files) = Files::fetch(&rocket) else {
        return Err(rocket);
    };
    let folder: String = rocket.figment().extract_inner("migrations").unwrap();
    let migrator = Migrator::new(Path::new(&folder)).await.unwrap();
    match migrator.run(&***files).await {
        Ok(()) => Ok(rocket),
        Err(_) => Err(rocket),
    }
}

#[tokio::test]
async fn a_fairing_migrates_the_database() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("1_orders.sql");
    std::fs::write(&file, "CREATE TABLE orders (item TEXT)").unwrap();
    let config = config()
        .merge(("migrations", home.path()))
        .merge(("databases.files.url", "sqlite::memory:"))
        .merge(("databases.files.max_connections", 1));
    let rocket = rocket::custom(config)
        .attach(Files::init())
        .attach(AdHoc::try_on_ignite("migrations", migrate));

    let rocket = rocket.ignite().await.unwrap();

    let db: &Db<Sqlite> = Files::fetch(&rocket).unwrap();
    let orders = sqlx::query("SELECT item FROM orders").fetch_all(db).await;
    assert_eq!(orders.unwrap().len(), 0);
}

/// A manager that needs a setting of its own.
struct Numbers(u32);

impl cenote::Manager for Numbers {
    type Resource = u32;
    type Error = std::io::Error;

    async fn open(&self) -> std::io::Result<u32> {
        Ok(self.0)
    }
}

impl RocketManager for Numbers {
    fn from_settings(settings: &Settings<'_>) -> Result<Self, BuildError> {
        let first = settings.value("first")?;
        match first {
            13 => Err("setting `first`: 13 is an unlucky number".into()),
            first => Ok(Self(first)),
        }
    }
}

#[tokio::test]
async fn a_manager_of_ones_own_is_made_from_the_settings() {
    let pool = Pool::<cenote::Pool<Numbers>>::init(&settings("first = 7"))
        .await
        .unwrap();
    let number = pool.get().await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(*number, 7);
    assert_eq!(pool.status().max_size, 8);

    for (toml, name) in [
        ("", "`first`"),
        ("first = 'x'", "`first`"),
        ("first = 13", "unlucky"),
    ] {
        let text = error_of::<Pool<cenote::Pool<Numbers>>>(toml).await;
        assert!(text.contains(name), "{text}");
    }
}
