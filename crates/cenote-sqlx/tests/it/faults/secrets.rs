//! Passwords change while the pool is in use, and no text shows them.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use cenote_sqlx::Credentials;

use super::world::{self, Db};
use super::{ACQUIRE, DB, as_user};

/// Records the `Debug` text of every event.
#[derive(Default)]
struct Recorder(Mutex<String>);

impl Recorder {
    fn record(&self, event: &dyn Debug) {
        self.0.lock().unwrap().push_str(&format!("{event:?}\n"));
    }
}

/// Implements `Observer` for these events.
macro_rules! records {
    ($($method:ident: $event:ident,)*) => {
        impl cenote::Observer for Recorder {$(
            fn $method(&self, event: &cenote::event::$event<'_>) {
                self.record(event);
            }
        )*}
    };
}

records! {
    pool_opened: PoolOpened,
    pool_closed: PoolClosed,
    opening: Opening,
    opened: Opened,
    open_failed: OpenFailed,
    acquired: Acquired,
    released: Released,
    discarded: Discarded,
    closed: Closed,
    timed_out: AcquireTimedOut,
}

/// Starts a private server with a user `guest`, whose password is `right`. Returns it with a handle
/// of the superuser.
async fn locked() -> (cenote_servers::Server, Db) {
    let server = world::start(&[]);
    let admin: Db = Db::from_url(server.url()).max_size(1).build().unwrap();
    world::lock_with_password(&server, &admin).await;
    (server, admin)
}

#[tokio::test]
async fn the_provider_is_asked_for_the_password_at_every_open() {
    let (server, admin) = locked().await;
    let word = Arc::new(Mutex::new("right"));
    let asked = Arc::new(AtomicU32::new(0));
    let (vault, counter) = (word.clone(), asked.clone());
    let url = world::marked(&as_user(server.url(), "unknown"), world::ANY_MARK);
    let db = Db::from_url(url).max_size(2).acquire_timeout(ACQUIRE * 5);
    let db = db.credentials(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        let word = *vault.lock().unwrap();
        async move {
            tokio::task::yield_now().await;
            Ok::<_, std::io::Error>(Credentials::new("guest", word))
        }
    });
    let db: Db = db.build().unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 0, "building opens nothing");
    sqlx::query("SELECT 1").execute(&db).await.unwrap();
    sqlx::query("SELECT 1").execute(&db).await.unwrap();
    assert_eq!(
        asked.load(Ordering::Relaxed),
        1,
        "an open connection needs no password"
    );

    world::set_password(&admin, "rotated-word").await;
    db.pool().invalidate();
    let refused = db.acquire().await.unwrap_err().to_string();
    *word.lock().unwrap() = "rotated-word";
    let held = [db.acquire().await.unwrap(), db.acquire().await.unwrap()];

    assert!(refused.contains("guest"), "{refused}");
    assert!(asked.load(Ordering::Relaxed) >= 4, "once for each open");
    drop(held);
}

#[tokio::test]
async fn no_event_and_no_error_shows_a_password() {
    let (server, admin) = locked().await;
    world::set_password(&admin, "right-secret").await;
    for word in ["wrong-secret", "right-secret"] {
        let recorder = Arc::new(Recorder::default());
        let url = as_user(server.url(), &format!("guest:{word}"));
        let builder = Db::from_url(world::marked(&url, world::ANY_MARK));
        let observer = recorder.clone();
        let builder = builder
            .max_size(1)
            .pool(move |pool| pool.observer(observer));
        let db: cenote_sqlx::Db<DB> = builder.acquire_timeout(ACQUIRE * 5).build().unwrap();

        let outcome = sqlx::query("SELECT 1").execute(&db).await;
        let mut shown = format!("{outcome:?} {db:?} {:?}", db.pool().status());
        if let Err(error) = &outcome {
            shown += &format!("{error} {:?}", cenote_sqlx::pool_error(error));
        }
        drop(db.pool().close_within(ACQUIRE).await);

        let recorded = recorder.0.lock().unwrap().clone();
        assert_eq!(outcome.is_ok(), word == "right-secret", "{shown}");
        assert!(recorded.contains("Open"), "no event: {recorded}");
        assert!(
            !recorded.contains(word) && !shown.contains(word),
            "{recorded} {shown}"
        );
    }
}
