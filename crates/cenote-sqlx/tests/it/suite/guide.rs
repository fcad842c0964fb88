//! The right side of the table "Coming from `sqlx::Pool`" in the README, line by line.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cenote_sqlx::{Session, TransactionOptions};
use sqlx::{Acquire, Executor};

use super::world::{self, DB};
use super::{Rig, number};

#[tokio::test]
async fn build_opens_nothing_and_warm_opens_the_minimum() {
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
async fn a_session_is_an_executor_in_hooks() {
    let (builder, _home) = world::builder();
    let db = builder.max_size(1).pool(|pool| {
        pool.before_acquire(async |session: &mut Session<DB>| ask(session, &BEFORE).await)
            .before_release(async |session: &mut Session<DB>| ask(session, &AFTER).await)
    });
    let db = db.build().unwrap();

    for _ in 0..4 {
        sqlx::query("SELECT 1").execute(&db).await.unwrap();
        // `before_acquire` is asked for idle resources only, so the other hook must have ended.
        let idle = tokio::time::timeout(Duration::from_secs(20), async {
            while db.pool().status().idle == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        idle.await.expect("the other hook ends");
    }

    assert_eq!(db.pool().status().opened, 1);
    assert_eq!(
        BEFORE.load(Ordering::Relaxed),
        3,
        "a fresh connection is not asked about"
    );
    assert!(AFTER.load(Ordering::Relaxed) >= 3);
}

#[tokio::test]
async fn a_lease_and_a_transaction_are_executors() {
    let rig = Rig::new("guide").await;
    rig.insert_on(&rig.db, 1).await.unwrap();
    let mut lease = rig.db.acquire().await.unwrap();
    rig.insert_on(&mut lease, 2).await.unwrap();
    rig.insert_on(&mut *lease, 3).await.unwrap();
    drop(lease);
    let mut tx = rig.db.begin().await.unwrap();
    rig.insert_on(&mut tx, 4).await.unwrap();
    tx.commit().await.unwrap();
    let work = rig.db.transaction(async || rig.insert(5).await);
    work.await.unwrap();
    let mut tx = rig
        .db
        .begin_with(TransactionOptions::new().read_only())
        .await
        .unwrap();
    assert!(rig.insert_on(&mut tx, 6).await.is_err());
    tx.rollback().await.unwrap();

    assert_eq!(rig.ids().await, [1, 2, 3, 4, 5]);
    rig.assert_clean().await;
}

#[tokio::test]
async fn generic_functions_take_the_handle_a_lease_and_a_transaction() {
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
    let refused = begin(&rig.db).await.unwrap_err().to_string();
    assert!(refused.contains("Db::begin"), "{refused}");
}

#[tokio::test]
async fn a_timeout_names_the_holders_and_has_them_as_data() {
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
    let cenote::scope::BindError::Acquire(cenote::AcquireError::TimedOut(seen)) = told else {
        panic!("{told:?}")
    };
    let holder = &seen.holders()[0];
    let label = holder.label.as_deref().unwrap();
    assert!(label.starts_with("SELECT id FROM cenote_"), "{label}");
    assert_eq!(holder.site.file(), file!());
    let shown = format!("{error} {error:?} {told:?}");
    assert!(shown.contains("1 of 1 in use"), "{shown}");
    assert!(!shown.contains("8675309"), "a parameter is shown: {shown}");
}

#[tokio::test]
async fn the_pool_has_a_status_and_can_be_resized_invalidated_and_closed() {
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
