//! Servers that deny a connection for good, and those that may accept one later.

use cenote::scope::BindError;
use cenote::{AcquireError, OpenError};
use cenote_sqlx::{Db, Dialect, is_denied, pool_error};

use crate::world;

/// Opens a connection by this URL, and returns whether the error is a denial.
async fn denies<DB: Dialect>(url: &str) -> bool {
    let db = Db::<DB>::from_url(url).build().unwrap();
    let error = db.acquire().await.map(drop).unwrap_err();
    match pool_error(&error) {
        Some(BindError::Acquire(AcquireError::Open {
            error: OpenError::Failed(cause),
            ..
        })) => is_denied(cause),
        other => panic!("{other:?}"),
    }
}

/// Returns the URL with another user, password or database.
fn changed(url: &str, change: impl FnOnce(&str, &str) -> String) -> String {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (place, _) = rest.split_once('/').unwrap();
    let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
    format!("{scheme}://{}", change(place, host))
}

#[tokio::test]
async fn an_unknown_user_a_wrong_password_and_an_unknown_database_are_denials() {
    let unknown = |place: &str, _: &str| format!("{place}/cenote_there_is_no_such_database");
    let stranger = |_: &str, host: &str| format!("cenote_no_one:wrong@{host}/mysql");
    let (postgres, mysql) = (world::postgres::url(), world::mysql::url());

    assert!(denies::<sqlx::Postgres>(&changed(&postgres, unknown)).await);
    assert!(denies::<sqlx::Postgres>(&changed(&postgres, stranger)).await);
    assert!(denies::<sqlx::MySql>(&changed(&mysql, unknown)).await);
    assert!(denies::<sqlx::MySql>(&changed(&mysql, stranger)).await);
    assert!(denies::<sqlx::Sqlite>("sqlite:///there/is/no/such/file?mode=rw").await);
}

#[tokio::test]
async fn a_server_that_is_not_there_may_come_back() {
    assert!(!denies::<sqlx::Postgres>("postgres://someone@127.0.0.1:1/nothing").await);
    assert!(!denies::<sqlx::MySql>("mysql://someone@127.0.0.1:1/nothing").await);
}
