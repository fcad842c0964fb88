//! The handle is a template: what it is built from, and what it tells nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cenote::Config;
use cenote_sqlx::{BuildError, Credentials, Db};

use crate::world;

#[tokio::test]
async fn building_opens_nothing_and_warming_does() {
    let db = world::postgres::builder().0.min_size(2).build().unwrap();
    assert_eq!(db.pool().status().total, 0);

    db.warm().await.unwrap();

    assert_eq!(db.pool().status().idle, 2);
}

#[tokio::test]
async fn settings_stand_in_the_url_and_win() {
    let url = world::postgres::url();
    let url = format!(
        "{url}&cenote.max_size=7&application_name=by-url&cenote.acquire_timeout=1m%2030s&cenote.idle_timeout=off\
         &cenote.check_on_return=true&cenote.lifetime_jitter=0.5&cenote.idle_order=oldest&cenote.max_uses=9&cenote.name=by+url"
    );
    let db = Db::postgres(url).max_size(3).min_idle(1).build().unwrap();

    assert_eq!(db.pool().status().max_size, 7);
    assert_eq!(db.pool().name(), "by url");
    let name: String = sqlx::query_scalar("SELECT current_setting('application_name')")
        .fetch_one(&db)
        .await
        .unwrap();
    assert_eq!(name, "by-url", "what is the driver's goes to the driver");
}

#[test]
fn a_wrong_setting_in_the_url_is_refused_with_the_known_ones() {
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
    assert!(refused("cenote.max_size=many").contains("not a whole number"));
    assert!(refused("cenote.acquire_timeout=5").contains("duration"));
    assert!(refused("cenote.idle_order=newest").contains("`oldest`"));
    let small = Db::sqlite("sqlite://x?cenote.max_size=0")
        .build()
        .unwrap_err();
    assert!(
        matches!(&small, BuildError::Config(error) if error.field() == "max_size"),
        "{small}"
    );
}

#[test]
fn settings_come_from_a_file() {
    let config: Config = toml::from_str("max_size = 3\nacquire_timeout = \"2s\"").unwrap();

    let db = Db::sqlite("sqlite://x").config(config).build().unwrap();

    assert_eq!(db.pool().status().max_size, 3);
}

#[test]
fn nothing_shows_a_password() {
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
    let url = world::as_user(&known, "nobody");
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
async fn a_provider_that_fails_fails_the_open_with_its_error() {
    let db = world::postgres::builder()
        .0
        .credentials(|| async { Err::<Credentials, _>("the vault is sealed") });
    let db = db.build().unwrap();

    let error = db.acquire().await.unwrap_err();

    assert!(error.to_string().contains("the vault is sealed"), "{error}");
}

#[test]
fn credentials_for_a_database_without_are_refused() {
    let db = Db::sqlite("sqlite://x")
        .credentials(|| async { Ok::<_, std::io::Error>(Credentials::new("a", "b")) });
    assert!(matches!(db.build(), Err(BuildError::NoCredentials)));
}

#[derive(Debug, Default)]
struct Counter(AtomicU32);

impl cenote::Observer for Counter {
    fn acquired(&self, _: &cenote::Acquired<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn what_is_not_data_is_set_on_the_pools_own_builder() {
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
async fn a_closed_database_says_so() {
    let (builder, _home) = world::sqlite::builder();
    let db = builder.build().unwrap();
    db.pool().close();

    let error = sqlx::query("SELECT 1").execute(&db).await.unwrap_err();

    assert!(matches!(error, sqlx::Error::PoolClosed), "{error:?}");
}
