//! The table "Coming from `sqlx::Pool`" of the README: its right side, line by line.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cenote_sqlx::{Session, TransactionOptions};
use sqlx::{Acquire, Executor};

use super::world::{self, DB};
use super::{Rig, number};

#[tokio::test]
async fn a_pool_is_built_and_opened_at_once_or_not() {
    let (builder, _home) = world::builder();
    let db = builder.max_size(20).min_size(2).min_idle(2);
    let db = db
        .acquire_timeout(Duration::from_secs(5))
        .idle_timeout(Duration::from_secs(60))
        .max_lifetime(None)
        .check_after_idle(Duration::ZERO);
    let db = db.build().unwrap();
    assert_eq!(db.pool().status().total, 0);

    db.warm().await.unwrap();

    assert_eq!(
        (db.pool().status().idle, db.pool().status().max_size),
        (2, 20)
    );
    sqlx::query("SELECT 1").execute(&db).await.unwrap();
}

static BEFORE: AtomicU32 = AtomicU32::new(0);
static AFTER: AtomicU32 = AtomicU32::new(0);

async fn ask(session: &mut Session<DB>, counter: &AtomicU32) -> bool {
    counter.fetch_add(1, Ordering::Relaxed);
    sqlx::query("SELECT 1").execute(session).await.is_ok()
}

#[tokio::test]
async fn hooks_ask_the_session() {
    let (builder, _home) = world::builder();
    let db = builder.max_size(1).pool(|pool| {
        pool.before_acquire(async |session: &mut Session<DB>| ask(session, &BEFORE).await)
            .before_release(async |session: &mut Session<DB>| ask(session, &AFTER).await)
    });
    let db = db.build().unwrap();

    for _ in 0..4 {
        sqlx::query("SELECT 1").execute(&db).await.unwrap();
        // Only one that rests is asked about: it does, once the other hook is done.
        let rests = tokio::time::timeout(Duration::from_secs(20), async {
            while db.pool().status().idle == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        rests.await.expect("the other hook ends");
    }

    assert_eq!(db.pool().status().opened, 1);
    assert_eq!(BEFORE.load(Ordering::Relaxed), 3, "not for a fresh one");
    assert!(AFTER.load(Ordering::Relaxed) >= 3);
}

#[tokio::test]
async fn a_lease_and_a_transaction_are_executors() {
    let rig = Rig::new("guide").await;
    let insert = |id: i32| {
        let sql = rig.sql("INSERT INTO {} (id, amount) VALUES (?, 1)");
        sqlx::query(sql).bind(id)
    };

    insert(1).execute(&rig.db).await.unwrap();
    let mut lease = rig.db.acquire().await.unwrap();
    insert(2).execute(&mut lease).await.unwrap();
    insert(3).execute(&mut *lease).await.unwrap();
    drop(lease);
    let mut tx = rig.db.begin().await.unwrap();
    insert(4).execute(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    let work = rig
        .db
        .transaction(async || insert(5).execute(&rig.db).await);
    work.await.unwrap();
    let mut tx = rig
        .db
        .begin_with(TransactionOptions::new().read_only())
        .await
        .unwrap();
    assert!(insert(6).execute(&mut tx).await.is_err());
    tx.rollback().await.unwrap();

    assert_eq!(rig.ids().await, [1, 2, 3, 4, 5]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn generic_functions_take_all_three() {
    async fn ask<'c>(executor: impl Executor<'c, Database = DB>) -> bool {
        executor.execute("SELECT 1").await.is_ok()
    }
    async fn begin<'c>(source: impl Acquire<'c, Database = DB>) -> Result<(), sqlx::Error> {
        source.begin().await?.rollback().await
    }
    let rig = Rig::new("guide_generic").await;
    let mut lease = rig.db.acquire().await.unwrap();
    let mut tx = rig.db.begin().await.unwrap();

    assert!(ask(&rig.db).await && ask(&mut lease).await && ask(&mut tx).await);
    begin(&mut lease).await.unwrap();
    begin(&mut tx).await.unwrap();
    assert!(begin(&rig.db).await.is_err(), "pass `&mut lease`");
}

#[tokio::test]
async fn a_timeout_says_who_holds_what_and_has_it_as_data() {
    let limit = Duration::from_millis(150);
    let rig = Rig::with("guide_timeout", |builder| {
        builder.max_size(1).acquire_timeout(limit)
    })
    .await;
    let mut held = rig.db.acquire().await.unwrap();
    let sql = rig.sql("SELECT id FROM {} WHERE id = ?");
    let secret = sqlx::query(sql).bind(8_675_309_i32);
    secret.execute(&mut held).await.unwrap();

    let error = number(&rig.db, "SELECT 1").await.unwrap_err();

    let sqlx::Error::Io(_) = &error else {
        panic!("{error:?}")
    };
    let told = cenote_sqlx::pool_error(&error).unwrap();
    let cenote::BindError::Acquire(cenote::AcquireError::TimedOut(seen)) = told else {
        panic!("{told:?}")
    };
    let holder = &seen.holders()[0];
    let label = holder.label.as_deref().unwrap();
    assert!(label.starts_with("SELECT id FROM cenote_"), "{label}");
    assert_eq!(holder.site.file(), file!());
    let shown = format!("{error} {error:?} {told:?}");
    assert!(shown.contains("1 of 1 in use"), "{shown}");
    assert!(!shown.contains("8675309"), "a parameter is told: {shown}");
}

#[tokio::test]
async fn the_whole_pool_is_seen_resized_invalidated_and_closed() {
    let rig = Rig::new("guide_whole").await;
    let pool = rig.db.pool();
    let lease = rig.db.acquire().await.unwrap();
    assert_eq!((pool.status().in_use, pool.leases().len()), (1, 1));
    assert!(pool.health().is_ready(), "{:?}", pool.health());

    pool.resize(2).unwrap();
    assert_eq!(pool.status().max_size, 2);
    pool.invalidate();
    let left = pool.close_within(Duration::from_millis(50)).await;

    assert_eq!(left.leases.len(), 1, "{left:?}");
    drop(lease);
    let error = sqlx::query("SELECT 1").execute(&rig.db).await.unwrap_err();
    assert!(matches!(error, sqlx::Error::PoolClosed), "{error:?}");
}
