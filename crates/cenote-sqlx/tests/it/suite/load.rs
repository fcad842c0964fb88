//! Load with kills: 200 tasks on ten connections move money, write rows, read marks and streams,
//! and change sessions, while callers give up and connections are killed. Its pauses are real,
//! because they are for real servers. `CENOTE_LOAD_SECONDS=120` makes it longer.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote_sqlx::Retry;
use cenote_testkit::clock::now;
use futures_util::TryStreamExt;
use tokio::time::{sleep, timeout};

use super::world;
use super::{Rig, number};

const TASKS: usize = 200;
const ACCOUNTS: i32 = 50;
const TOTAL: i64 = 1000 * ACCOUNTS as i64;
const MARKS: i32 = 500;

/// What the tasks did and saw.
#[derive(Default)]
struct Tally {
    over: AtomicBool,
    last: AtomicI32,
    moved: AtomicU32,
    marks: AtomicU32,
    streams: AtomicU32,
    changes: AtomicU32,
    sums: AtomicU32,
    cut: AtomicU32,
    failed: AtomicU32,
    killed: AtomicU32,
    /// Rows whose write was acknowledged, and rows whose transaction was rolled back.
    acknowledged: Mutex<Vec<i32>>,
    undone: Mutex<Vec<i32>>,
    /// Connections that were seen at work.
    seen: Mutex<Vec<i64>>,
}

fn count(counter: &AtomicU32) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_mixed_up_or_left_open_under_load_with_kills() {
    let seconds = std::env::var("CENOTE_LOAD_SECONDS").ok();
    let seconds = seconds.map_or(3, |seconds| seconds.parse().unwrap());
    let rig = Arc::new(prepared().await);
    let tally = Arc::new(Tally::default());
    let begun = now();

    let tasks = (0..TASKS).map(|_| tokio::spawn(work(rig.clone(), tally.clone())));
    let tasks: Vec<_> = tasks.collect();
    let others = [
        tokio::spawn(sums(rig.clone(), tally.clone())),
        tokio::spawn(kills(rig.clone(), tally.clone())),
    ];
    while begun.elapsed() < Duration::from_secs(seconds) {
        sleep(Duration::from_millis(50)).await;
    }
    tally.over.store(true, Ordering::Relaxed);
    for task in tasks.into_iter().chain(others) {
        task.await.unwrap();
    }

    // Some idle connections were killed.
    rig.db.pool().invalidate();
    settled(&rig, &tally).await;
    rig.assert_clean().await;
    assert_eq!(rig.db.pool().status().leaked, 0);
}

/// Returns a database with accounts, with marks to be read, and without written rows.
async fn prepared() -> Rig {
    let customize = |builder: cenote_sqlx::Builder<world::DB>| {
        let builder = builder.max_size(10).leak_after(Duration::from_secs(60));
        builder.acquire_timeout(Duration::from_secs(60))
    };
    let rig = Rig::with("load", customize).await;
    for table in ["{}_rows", "{}_marks"] {
        rig.run(&format!("DROP TABLE IF EXISTS {table}")).await;
        rig.run(&format!("CREATE TABLE {table} (id INTEGER PRIMARY KEY)"))
            .await;
    }
    let values = |ids: std::ops::Range<i32>, rest: &str| {
        let rows: Vec<String> = ids.map(|id| format!("({id}{rest})")).collect();
        rows.join(", ")
    };
    let accounts = values(0..ACCOUNTS, ", 1000");
    rig.run(&format!("INSERT INTO {{}} (id, amount) VALUES {accounts}"))
        .await;
    let marks = values(0..MARKS, "");
    rig.run(&format!("INSERT INTO {{}}_marks (id) VALUES {marks}"))
        .await;
    rig
}

/// One thing after another, each with a limit that sometimes cuts it off.
async fn work(rig: Arc<Rig>, tally: Arc<Tally>) {
    while !tally.over.load(Ordering::Relaxed) {
        let limit = match fastrand::u8(0..4) {
            0 => Duration::from_micros(fastrand::u64(0..50_000)),
            _ => Duration::from_secs(100),
        };
        let done = timeout(limit, one(&rig, &tally)).await;
        match done {
            Ok(Ok(())) => {}
            Ok(Err(_)) => count(&tally.failed),
            Err(_) => count(&tally.cut),
        }
    }
}

async fn one(rig: &Rig, tally: &Tally) -> Result<(), sqlx::Error> {
    match fastrand::u8(0..20) {
        0..6 => {
            let (from, to) = (fastrand::i32(0..ACCOUNTS), fastrand::i32(0..ACCOUNTS));
            let amount = fastrand::i64(1..50);
            let transfer = || transfer(rig, tally, from, to, amount);
            rig.db.retrying(Retry::default(), transfer).await?;
            count(&tally.moved);
        }
        6..9 => {
            let id = tally.last.fetch_add(1, Ordering::Relaxed);
            row(rig, id).await?;
            tally.acknowledged.lock().unwrap().push(id);
        }
        9 => roll_back(rig, tally).await?,
        10..15 => {
            let id = fastrand::i32(0..MARKS);
            let mark = sqlx::query_scalar(rig.sql("SELECT id FROM {}_marks WHERE id = ?"));
            let read: i32 = mark.bind(id).fetch_one(&rig.db).await?;
            assert_eq!(read, id, "the answer to another statement");
            count(&tally.marks);
        }
        15..19 => stream(rig, tally).await?,
        _ => {
            let changed = cenote::scope(async {
                sqlx::raw_sql(world::CHANGE).execute(&rig.db).await?;
                number(&rig.db, world::CHANGED).await
            });
            assert_eq!(changed.await?, 1, "a change is lost in its scope");
            count(&tally.changes);
        }
    }
    if fastrand::u8(0..20) == 0 {
        assert_eq!(number(&rig.db, world::CHANGED).await?, 0, "a change leaked");
    }
    Ok(())
}

async fn row(rig: &Rig, id: i32) -> Result<(), sqlx::Error> {
    let insert = sqlx::query(rig.sql("INSERT INTO {}_rows (id) VALUES (?)"));
    insert.bind(id).execute(&rig.db).await.map(drop)
}

/// Moves money by two updates.
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
    for (id, amount) in [(from, -amount), (to, amount)] {
        let sql = rig.sql("UPDATE {} SET amount = amount + ? WHERE id = ?");
        let update = sqlx::query(sql).bind(amount).bind(id);
        update.execute(&rig.db).await?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Writes a row in a transaction that ends in one of three ways, none of which commits.
async fn roll_back(rig: &Rig, tally: &Tally) -> Result<(), sqlx::Error> {
    let id = tally.last.fetch_add(1, Ordering::Relaxed);
    tally.undone.lock().unwrap().push(id);
    if fastrand::bool() {
        let work = async || {
            row(rig, id).await?;
            Err(sqlx::Error::RowNotFound)
        };
        return match rig.db.transaction(work).await {
            Ok(()) | Err(sqlx::Error::RowNotFound) => Ok(()),
            Err(error) => Err(error),
        };
    }
    let mut transaction = rig.db.begin().await?;
    let insert = sqlx::query(rig.sql("INSERT INTO {}_rows (id) VALUES (?)"));
    insert.bind(id).execute(&mut transaction).await?;
    match fastrand::bool() {
        true => transaction.rollback().await,
        false => Ok(()),
    }
}

/// Reads a stream of marks, often not to its end.
async fn stream(rig: &Rig, tally: &Tally) -> Result<(), sqlx::Error> {
    let from = fastrand::i32(0..MARKS / 2);
    let sql = rig.sql("SELECT id FROM {}_marks WHERE id >= ? ORDER BY id");
    let mut rows = sqlx::query_scalar::<_, i32>(sql).bind(from).fetch(&rig.db);
    let enough = fastrand::i32(1..MARKS);
    let mut expected = from;
    while let Some(id) = rows.try_next().await? {
        assert_eq!(id, expected, "the row of another stream");
        expected += 1;
        if expected - from >= enough {
            break;
        }
    }
    assert!(
        expected == MARKS || expected - from >= enough,
        "rows are missing"
    );
    count(&tally.streams);
    Ok(())
}

/// Asserts that every total that can be read is right.
async fn sums(rig: Arc<Rig>, tally: Arc<Tally>) {
    let sum = world::SUM.replace("{}", &rig.table);
    while !tally.over.load(Ordering::Relaxed) {
        if let Ok(sum) = number(&rig.db, &sum).await {
            assert_eq!(sum, TOTAL, "money was made or lost");
            count(&tally.sums);
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// Kills connections of this test, or invalidates the pool where connections cannot be killed.
async fn kills(rig: Arc<Rig>, tally: Arc<Tally>) {
    let (builder, _home) = world::builder();
    let admin = builder.max_size(1).build().unwrap();
    while !tally.over.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(fastrand::u64(50..250))).await;
        let victim = tally.seen.lock().unwrap().pop();
        if world::WHO.is_none() {
            rig.db.pool().invalidate();
            count(&tally.killed);
        } else if let Some(victim) = victim {
            let sql = world::KILL.replace("{}", &victim.to_string());
            let killed = sqlx::raw_sql(world::sql(&sql)).execute(&admin).await;
            tally
                .killed
                .fetch_add(u32::from(killed.is_ok()), Ordering::Relaxed);
        }
    }
}

/// Asserts what must hold at the end, and prints the figures.
async fn settled(rig: &Rig, tally: &Tally) {
    let sum = world::SUM.replace("{}", &rig.table);
    assert_eq!(number(&rig.db, &sum).await.unwrap(), TOTAL);
    let rows = sqlx::query_scalar(rig.sql("SELECT id FROM {}_rows"));
    let rows: HashSet<i32> = rows.fetch_all(&rig.db).await.unwrap().into_iter().collect();
    let acknowledged = tally.acknowledged.lock().unwrap().clone();
    let lost = acknowledged.iter().filter(|id| !rows.contains(id)).count();
    let undone = tally.undone.lock().unwrap().clone();
    let ghosts = undone.iter().filter(|id| rows.contains(id)).count();
    let seen = |counter: &AtomicU32| counter.load(Ordering::Relaxed);
    let (moved, marks, streams) = (seen(&tally.moved), seen(&tally.marks), seen(&tally.streams));
    println!(
        "money {TOTAL}: {moved} moved, {} sums; {} rows acknowledged, {lost} lost; {} rolled back, \
         {ghosts} ghosts; {marks} marks, {streams} streams, {} changed sessions, 0 wrong; {} kills, \
         {} cancelled, {} failed",
        seen(&tally.sums),
        acknowledged.len(),
        undone.len(),
        seen(&tally.changes),
        seen(&tally.killed),
        seen(&tally.cut),
        seen(&tally.failed),
    );
    assert_eq!((lost, ghosts), (0, 0));
    let enough = TASKS as u32 / 4;
    assert!(
        moved > enough && marks > enough && streams > enough && seen(&tally.cut) > enough,
        "too little was done for a test"
    );
    assert!(seen(&tally.killed) > 3 && !acknowledged.is_empty() && !undone.is_empty());
}
