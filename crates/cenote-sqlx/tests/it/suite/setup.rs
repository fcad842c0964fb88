//! What a user adds to opens and checks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sqlx::{Error, Executor};

use super::{Db, Rig, number, world};

#[tokio::test]
async fn code_prepares_every_connection_and_again_after_a_reset() {
    let (builder, _home) = world::builder();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let db = builder.max_size(3).after_connect(move |connection| {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { connection.execute(world::CHANGE).await.map(drop) })
    });
    let db = db.build().unwrap();
    let changed = async |lease: &mut cenote_sqlx::Lease<_>| -> i64 {
        sqlx::query_scalar(world::CHANGED)
            .fetch_one(lease)
            .await
            .unwrap()
    };

    for _ in 0..2 {
        let mut all = Vec::new();
        for _ in 0..3 {
            let mut lease = db.acquire().await.unwrap();
            assert_eq!(changed(&mut lease).await, 1, "a connection is not prepared");
            lease.execute(world::UNDO).await.unwrap();
            assert_eq!(changed(&mut lease).await, 0);
            all.push(lease);
        }
    }

    let closes = db.pool().status().closes.total();
    assert_eq!(closes == 0, world::RESETS, "{closes} were closed");
    drop(db.acquire().await.unwrap());
    assert!(runs.load(Ordering::SeqCst) >= 6, "{runs:?}");
}

#[tokio::test]
async fn code_that_fails_fails_the_open_with_its_error() {
    let (builder, _home) = world::builder();
    let db = builder.after_connect(|_| {
        Box::pin(async { Err(Error::InvalidArgument(String::from("no such extension"))) })
    });
    let db = db.build().unwrap();

    let error = db.acquire().await.unwrap_err().to_string();

    assert!(error.contains("no such extension"), "{error}");
    assert_eq!(db.pool().status().total, 0);
}

#[tokio::test]
async fn a_connection_that_fails_the_query_of_the_user_is_closed() {
    let rig = Rig::new("check_query").await;
    let query = format!("SELECT count(*) FROM {}", rig.table);
    let db = Db::from_url(world::url_at(&rig._home)).max_size(1);
    let db = db.check_after_idle(Duration::ZERO);
    let db = db.check_query(query).build().unwrap();
    for _ in 0..3 {
        number(&db, "SELECT 1").await.ok();
    }
    assert_eq!(db.pool().status().opened, 1);

    rig.run("DROP TABLE {}").await;
    number(&db, "SELECT 1").await.ok();

    assert_eq!(db.pool().status().opened, 2);
}
