//! Transfers between accounts, with cancellations and killed connections. The total never changes.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote_sqlx::Retry;
use tokio::time::{sleep, timeout};

use super::world;
use super::{Rig, number};

const ACCOUNTS: i32 = 20;
const TASKS: u32 = 500;
const TRANSFERS: u32 = 3;
const TOTAL: i64 = 1000 * ACCOUNTS as i64;

#[derive(Default)]
struct Tally {
    moved: AtomicU32,
    dropped: AtomicU32,
    failed: AtomicU32,
    killed: AtomicU32,
    over: AtomicBool,
    /// Connections that were seen at work.
    seen: Mutex<Vec<i64>>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_money_is_made_or_lost_by_500_tasks_on_10_connections() {
    let customize = |builder: cenote_sqlx::Builder<world::DB>| {
        builder
            .max_size(10)
            .acquire_timeout(Duration::from_secs(60))
    };
    let rig = Arc::new(Rig::with("money", customize).await);
    for id in 0..ACCOUNTS {
        let sql = rig.sql("INSERT INTO {} (id, amount) VALUES (?, 1000)");
        sqlx::query(sql).bind(id).execute(&rig.db).await.unwrap();
    }
    let tally = Arc::new(Tally::default());

    let mut tasks = Vec::new();
    for _ in 0..TASKS {
        tasks.push(tokio::spawn(move_money(rig.clone(), tally.clone())));
    }
    let reader = tokio::spawn(read(rig.clone(), tally.clone()));
    let killer = tokio::spawn(kill(rig.clone(), tally.clone()));
    for task in tasks {
        task.await.unwrap();
    }
    tally.over.store(true, Ordering::Relaxed);
    let reads = reader.await.unwrap();
    killer.await.unwrap();
    // Some idle connections were killed.
    rig.db.pool().invalidate();

    let sum = number(&rig.db, &world::SUM.replace("{}", &rig.table))
        .await
        .unwrap();
    assert_eq!(sum, TOTAL);
    let count = |counter: &AtomicU32| counter.load(Ordering::Relaxed);
    let (moved, dropped) = (count(&tally.moved), count(&tally.dropped));
    println!(
        "moved {moved}, dropped {dropped}, failed {}, killed {}, sums read {reads}",
        count(&tally.failed),
        count(&tally.killed)
    );
    assert!(
        moved > TASKS / 2 && dropped > TASKS / 20 && reads > 5,
        "too few transfers, drops or reads for a test"
    );
    assert!(
        count(&tally.killed) > 3,
        "too few connections were killed for a test"
    );
    assert!(rig.db.pool().status().total <= 10);
    rig.assert_clean().await;
}

async fn move_money(rig: Arc<Rig>, tally: Arc<Tally>) {
    for _ in 0..TRANSFERS {
        let (from, to) = (fastrand::i32(0..ACCOUNTS), fastrand::i32(0..ACCOUNTS));
        let amount = fastrand::i64(1..50);
        let transfer = rig.db.retrying(Retry::default(), || {
            transfer(&rig, &tally, from, to, amount)
        });
        let patience = if fastrand::u8(0..10) < 3 {
            Duration::from_micros(fastrand::u64(0..400_000))
        } else {
            Duration::from_secs(60)
        };
        match timeout(patience, transfer).await {
            Ok(Ok(())) => tally.moved.fetch_add(1, Ordering::Relaxed),
            Ok(Err(_)) => tally.failed.fetch_add(1, Ordering::Relaxed),
            Err(_) => tally.dropped.fetch_add(1, Ordering::Relaxed),
        };
    }
}

/// Moves money by two updates, which do not name the transaction.
async fn transfer(
    rig: &Rig,
    tally: &Tally,
    from: i32,
    to: i32,
    amount: i64,
) -> Result<(), sqlx::Error> {
    if let Some(who) = world::WHO {
        let id = number(&rig.db, who).await?;
        tally.seen.lock().unwrap().push(id);
    }
    add(rig, from, -amount).await?;
    tokio::task::yield_now().await;
    add(rig, to, amount).await?;
    if fastrand::u8(0..10) == 0 {
        return Err(sqlx::Error::RowNotFound);
    }
    Ok(())
}

async fn add(rig: &Rig, id: i32, amount: i64) -> Result<(), sqlx::Error> {
    let sql = rig.sql("UPDATE {} SET amount = amount + ? WHERE id = ?");
    sqlx::query(sql)
        .bind(amount)
        .bind(id)
        .execute(&rig.db)
        .await
        .map(drop)
}

/// Asserts that every total that can be read is right. Returns the number of reads.
async fn read(rig: Arc<Rig>, tally: Arc<Tally>) -> u32 {
    let mut reads = 0;
    while !tally.over.load(Ordering::Relaxed) {
        if let Ok(sum) = number(&rig.db, &world::SUM.replace("{}", &rig.table)).await {
            assert_eq!(sum, TOTAL, "money was made or lost");
            reads += 1;
        }
    }
    reads
}

/// Kills connections, or invalidates the pool where connections cannot be killed.
async fn kill(rig: Arc<Rig>, tally: Arc<Tally>) {
    let (builder, _home) = world::builder();
    let admin = builder.max_size(1).build().unwrap();
    while !tally.over.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(30)).await;
        if world::WHO.is_none() {
            rig.db.pool().invalidate();
            tally.killed.fetch_add(1, Ordering::Relaxed);
        }
        let victim = tally.seen.lock().unwrap().pop();
        if let Some(victim) = victim {
            let sql = world::KILL.replace("{}", &victim.to_string());
            let killed = sqlx::raw_sql(world::sql(&sql))
                .execute(&admin)
                .await
                .is_ok();
            tally.killed.fetch_add(u32::from(killed), Ordering::Relaxed);
        }
    }
}
