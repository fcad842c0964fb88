//! A hundred pools with ten thousand events a second.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use cenote_dashboard::Dashboard;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval};

use super::browser::Tab;
use super::rig::{AnyPool, Server, pool};

const POOLS: usize = 100;

/// Acquires and releases per second, of all pools together: each is an event.
const EVENTS: u64 = 10_000;

/// Puts an even load on all pools. Some acquires are refused, so that the lists of events have work
/// too. Returns the number of events so far.
fn load(pools: Vec<AnyPool>, stop: Arc<AtomicBool>) -> Arc<AtomicU64> {
    let events = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&events);
    tokio::spawn(async move {
        let mut turns = interval(Duration::from_millis(10));
        turns.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut next = 0;
        while !stop.load(Relaxed) {
            turns.tick().await;
            for _ in 0..EVENTS / 200 {
                next = (next + 1) % pools.len();
                drop(pools[next].acquire().await);
                count.fetch_add(2, Relaxed);
            }
        }
    });
    events
}

/// Returns the memory of this process, in kilobytes.
fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.unwrap().split_whitespace().next();
    kilobytes.unwrap().parse().unwrap()
}

/// Measures the page for some seconds: tasks that block it for over 50 ms, and the time between
/// the pictures that it draws.
const MEASURE: &str = "new Promise((resolve) => {
    const long = [];
    new PerformanceObserver((list) => long.push(...list.getEntries().map((it) => it.duration)))
        .observe({ type: 'longtask' });
    const gaps = [];
    const end = performance.now() + 6000;
    let last = performance.now();
    const draw = (now) => {
        gaps.push(now - last);
        last = now;
        if (now < end) requestAnimationFrame(draw);
        else {
            gaps.sort((a, b) => a - b);
            resolve({
                frames: gaps.length,
                median: gaps[Math.floor(gaps.length / 2)],
                p95: gaps[Math.floor(gaps.length * 0.95)],
                longest: gaps.at(-1),
                long: long.length,
                blocked: long.reduce((sum, it) => sum + it, 0),
                heap: performance.memory.usedJSHeapSize,
            });
        }
    };
    requestAnimationFrame(draw);
})";

/// Returns for how many seconds the main thread of the page has used a processor.
async fn busy(tab: &Tab) -> f64 {
    let metrics = tab.call("Performance.getMetrics", json!({})).await;
    let mut metrics = metrics["metrics"].as_array().unwrap().iter();
    let tasks = metrics.find(|metric| metric["name"] == "TaskDuration");
    tasks.unwrap()["value"].as_f64().unwrap()
}

/// Watches the open page for six seconds under load.
async fn assert_smooth(tab: &Tab, events: &AtomicU64) {
    // Threads wait for each other on a busy machine: only the time of the processor counts.
    let domain = json!({"timeDomain": "threadTicks"});
    tab.call("Performance.enable", domain).await;
    // What grows once grows here: tables, pages of the allocator, code that is compiled.
    tab.eval(MEASURE).await;
    let (memory_before, events_before) = (memory(), events.load(Relaxed));
    let busy_before = busy(tab).await;

    let seen = tab.eval(MEASURE).await;

    let busy = busy(tab).await - busy_before;
    let events = events.load(Relaxed) - events_before;
    let grown = memory().saturating_sub(memory_before);
    println!("{events} events in 6 s, memory grew by {grown} kB, page busy for {busy} s: {seen}");
    assert!(events > 6 * EVENTS * 8 / 10, "only {events} events");
    assert!(busy < 1.5, "a quarter of the time: {busy} s");
    assert!(seen["median"].as_f64().unwrap() < 50.0, "{seen}");
    assert!(seen["heap"].as_u64().unwrap() < 64 << 20, "{seen}");
    assert!(grown < 16 << 10, "{grown} kB in six seconds");
    tab.assert_content();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_pools_with_ten_thousand_events_a_second_stay_smooth() {
    let mut pools: Vec<_> = (0..POOLS - 1)
        .map(|nth| pool(&format!("load {nth}"), 10))
        .collect();
    let refusing = pool("load refused", 10);
    refusing.breaker().trip();
    pools.push(refusing);
    let server = Server::start(Dashboard::new());
    let stop = Arc::new(AtomicBool::new(false));
    let events = load(pools, Arc::clone(&stop));
    let tab = Tab::open(&server.url("/live")).await;
    tab.until(&format!(
        "document.querySelectorAll('.pools tbody tr').length >= {POOLS}"
    ))
    .await;

    assert_smooth(&tab, &events).await;
    stop.store(true, Relaxed);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_pool_with_ten_thousand_events_a_second_stays_smooth() {
    let busy = pool("load one", 500);
    let mut held = Vec::new();
    for _ in 0..400 {
        held.push(busy.acquire().await.unwrap());
    }
    let server = Server::start(Dashboard::new());
    let stop = Arc::new(AtomicBool::new(false));
    let events = load(vec![busy.clone()], Arc::clone(&stop));
    let tab = Tab::open(&server.url(&format!("/live#/pool/{}", busy.number()))).await;
    tab.until("document.querySelectorAll('.slots .cell').length === 500")
        .await;

    assert_smooth(&tab, &events).await;
    stop.store(true, Relaxed);
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_that_a_slow_client_misses_are_shown_on_the_page() {
    let pools: Vec<_> = (0..POOLS)
        .map(|nth| pool(&format!("slow {nth}"), 10))
        .collect();
    let server = Server::start(Dashboard::new().interval(Duration::from_millis(50)));
    // It asks for the stream, and does not read it.
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    let request = format!(
        "GET /pools/api/events HTTP/1.1\r\nHost: {}\r\n\r\n",
        server.address
    );
    slow.write_all(request.as_bytes()).await.unwrap();
    let tab = Tab::open(&server.url("/live")).await;
    tab.until("document.querySelectorAll('.pools tbody tr').length >= 100")
        .await;
    let (before, after) = (memory(), Duration::from_secs(6));
    tokio::time::sleep(after).await;
    let grown = memory().saturating_sub(before);

    // It wakes up, and reads what was kept for it.
    let mut buffer = vec![0; 1 << 16];
    let mut read = 0;
    let dropped = "Number(/([\\d,]+) frames? dropped/.exec(document.getElementById('about').innerText)?.[1].replaceAll(',', ''))";
    while tab.eval(&format!("{dropped} > 0")).await != true {
        read += slow.read(&mut buffer).await.unwrap();
        assert!(read < 64 << 20, "{read} bytes were kept for one client");
    }

    assert!(grown < 16 << 10, "{grown} kB");
    tab.assert_content();
    drop(pools);
}
