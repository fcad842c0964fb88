//! Passwords that change, and that no text shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_mysql::{Config, Credentials, Pool};

use crate::rig::Rig;

const USER: &str = "cenote_my_rotating";

#[tokio::test]
async fn the_provider_is_asked_at_each_open() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let rig = Rig::with("rotating", move |builder| {
        builder.max_size(1).credentials(move || {
            let nth = count.fetch_add(1, Ordering::SeqCst);
            async move { Ok::<_, String>(Credentials::new(USER, format!("secret-{nth}"))) }
        })
    })
    .await;
    let mut admin = rig.admin().await;
    let make = format!(
        "CREATE OR REPLACE USER {USER}@'%' IDENTIFIED BY 'secret-0'; \
         GRANT ALL ON {}.* TO {USER}@'%'",
        rig.mark
    );
    admin.query_drop(make).await.unwrap();

    let user = "SELECT SUBSTRING_INDEX(USER(), '@', 1)";
    let first: Option<String> = rig.pool.query_first(user).await.unwrap();
    let change = format!("ALTER USER {USER}@'%' IDENTIFIED BY 'secret-1'");
    admin.query_drop(change).await.unwrap();
    rig.pool.invalidate();
    let second: Option<String> = rig.pool.query_first(user).await.unwrap();

    assert_eq!(
        (first.as_deref(), second.as_deref()),
        (Some(USER), Some(USER))
    );
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_provider_that_fails_or_panics_fails_the_open() {
    let failing = Pool::from_url("mysql://127.0.0.1:1/shop")
        .credentials(|| async { Err::<Credentials, _>("the vault is sealed") })
        .build()
        .unwrap();
    let panicking = Pool::from_url("mysql://127.0.0.1:1/shop")
        .credentials(|| async { panic!("on purpose") as Result<Credentials, String> })
        .build()
        .unwrap();

    let failed = failing.acquire().await.unwrap_err();
    let panicked = panicking.acquire().await.unwrap_err();

    assert!(
        failed.to_string().contains("the vault is sealed"),
        "{failed}"
    );
    assert!(panicked.to_string().contains("panic"), "{panicked}");
}

#[tokio::test]
async fn no_text_has_the_password() {
    let url = "mysql://app:secret-word@127.0.0.1:1/shop";
    let config = Config {
        url: url.to_owned(),
        ..Config::default()
    };
    let builder = Pool::from_url(url);
    let mut texts = vec![format!("{config:?}"), format!("{builder:?}")];
    let pool = builder.build().unwrap();
    let error = pool.acquire().await.unwrap_err();
    texts.push(format!("{pool:?} {:?}", pool.manager()));
    texts.push(format!("{error} {error:?}"));
    let broken = Pool::from_url("mysql://app:secret-word@127.0.0.1:port").build();
    texts.push(format!("{:?}", broken.unwrap_err()));

    for text in texts {
        assert!(!text.contains("secret-word"), "{text}");
    }
}

#[tokio::test]
async fn a_session_does_not_show_the_password() {
    let rig = Rig::new("debug").await;
    let lease = rig.acquire().await;
    assert!(format!("{:?}", **lease).starts_with("Session"));
}
