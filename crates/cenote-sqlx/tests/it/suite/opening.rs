//! The settings of a handle, and when it opens connections.

use std::time::Duration;

use cenote::Config;

use super::world;

#[tokio::test]
async fn building_opens_nothing_and_warming_opens_the_minimum() {
    let (builder, _home) = world::builder();
    let db = builder.min_size(3).build().unwrap();
    tokio::task::yield_now().await;
    let seen = db.pool().status();
    assert_eq!((seen.total, seen.opened, seen.opening), (0, 0, 0));

    db.warm().await.unwrap();

    let seen = db.pool().status();
    assert_eq!((seen.idle, seen.opened), (3, 3));
}

#[tokio::test]
async fn settings_in_the_url_reach_the_pool_and_the_rest_the_driver() {
    let parameters =
        "cenote.max_size=2&cenote.min_size=1&cenote.acquire_timeout=150ms&cenote.name=by%20url";
    let (builder, _home) = world::builder_with(parameters);
    let db = builder.max_size(9).build().unwrap();
    let held = [db.acquire().await.unwrap(), db.acquire().await.unwrap()];

    let error = db.acquire().await.unwrap_err().to_string();

    assert_eq!(
        (db.pool().status().max_size, db.pool().name()),
        (2, "by url")
    );
    assert!(error.contains("2 of 2 in use"), "{error}");
    drop(held);
    db.warm().await.unwrap();
}

#[tokio::test]
async fn settings_in_a_file_reach_the_pool() {
    let file = "max_size = 2\nmin_size = 2\nacquire_timeout = \"150ms\"\nname = \"by file\"";
    let config: Config = toml::from_str(file).unwrap();
    let (builder, _home) = world::builder();
    let db = builder.config(config).build().unwrap();
    db.warm().await.unwrap();
    let held = [db.acquire().await.unwrap(), db.acquire().await.unwrap()];

    let error = db.acquire().await.unwrap_err().to_string();

    assert_eq!(
        (db.pool().status().opened, db.pool().name()),
        (2, "by file")
    );
    assert!(error.contains("2 of 2 in use"), "{error}");
    drop(held);
}

#[tokio::test]
async fn a_setting_of_the_builder_is_applied_to_old_and_new_connections() {
    let (builder, _home) = world::builder();
    let builder = builder.max_size(2).acquire_timeout(Duration::from_secs(10));
    let db = builder.setting(world::CHANGE).build().unwrap();

    for round in 0..4 {
        let (mut one, mut other) = (db.acquire().await.unwrap(), db.acquire().await.unwrap());
        for lease in [&mut one, &mut other] {
            let set: i64 = sqlx::query_scalar(world::CHANGED)
                .fetch_one(&mut *lease)
                .await
                .unwrap();
            assert_eq!(set, 1);
            // The session is reset, or closed where there is no reset.
            sqlx::raw_sql(world::UNDO).execute(lease).await.unwrap();
        }
        drop((one, other));
        if round % 2 == 1 {
            db.pool().invalidate();
        }
    }
}
