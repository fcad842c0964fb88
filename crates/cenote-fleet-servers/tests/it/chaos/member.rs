//! One member as a process of its own, which obeys its standard input.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use cenote_fleet::Fleet;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use super::crew;
use super::pool::{Lease, Pool, Terms};

/// The capacity, the TTL, whether sessions are counted, and the URLs of the servers. A process that
/// has it is a member.
pub(super) const ORDERS: &str = "CENOTE_FLEET_MEMBER";

/// So many callers run at most.
const CALLERS: usize = 60;

#[test]
fn a_member_is_a_process_of_its_own() {
    match std::env::var(ORDERS) {
        Ok(orders) => {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(run(&orders));
        }
        Err(_) => crew::assert_one_process_is_served(),
    }
}

#[derive(Default)]
struct Tally {
    served: AtomicU64,
    /// Callers that got an error before their time was up.
    failed: AtomicU64,
}

async fn run(orders: &str) {
    let mut words = orders.split(' ');
    let mut word = || words.next().unwrap();
    let terms = Terms {
        capacity: word().parse().unwrap(),
        ttl: Duration::from_millis(word().parse().unwrap()),
        is_counted: word().parse().unwrap(),
        urls: words.collect(),
    };
    let (pool, fleet) = join(&terms).await;
    println!("@joined {}", seconds_since_1970());
    let tally = Arc::new(Tally::default());
    let (demand, _) = watch::channel(0);
    for nth in 0..CALLERS {
        let (pool, tally) = (pool.clone(), Arc::clone(&tally));
        tokio::spawn(call(nth, pool, demand.subscribe(), tally));
    }
    let mut lines = lines();
    let mut held = Vec::new();
    while let Some(line) = lines.recv().await {
        let (verb, number) = line.split_once(' ').unwrap_or((&line, "0"));
        let number: usize = number.parse().unwrap();
        match verb {
            "work" => demand.send_replace(number),
            "hold" => {
                let began = now();
                held = hold(&pool, number).await;
                println!("@held {}", began.elapsed().as_millis());
                0
            }
            "drop" => {
                held.clear();
                0
            }
            _ => {
                let status = fleet.status();
                let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
                println!(
                    "@told {} {} {} {}",
                    count(&tally.served),
                    count(&tally.failed),
                    status.share,
                    status.members.len(),
                );
                0
            }
        };
    }
    fleet.leave().await;
    println!("@left");
}

/// The wall clock, which nothing but this line reads.
fn seconds_since_1970() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap().as_secs()
}

#[expect(clippy::disallowed_methods, reason = "the ban guards the pool")]
fn now() -> Instant {
    Instant::now()
}

async fn join(terms: &Terms<'_>) -> (Pool, Fleet) {
    loop {
        match Pool::join(terms).await {
            Ok(joined) => return joined,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Reads the orders of the parent. They end with it.
fn lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// A caller that wants a connection while it is among the first `demand`.
async fn call(nth: usize, pool: Pool, mut demand: watch::Receiver<usize>, tally: Arc<Tally>) {
    while demand.wait_for(|demand| nth < *demand).await.is_ok() {
        match pool.acquire().await {
            Ok(mut lease) => {
                lease.run().await;
                sleep(Duration::from_millis(fastrand::u64(5..25))).await;
                tally.served.fetch_add(1, Ordering::Relaxed);
            }
            Err(None) => {}
            Err(Some(error)) => {
                println!("@failed {error}");
                tally.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

async fn hold(pool: &Pool, count: usize) -> Vec<Lease> {
    let acquire = |_| {
        let pool = pool.clone();
        tokio::spawn(async move { pool.acquire().await.expect("a connection in time") })
    };
    let acquiring: Vec<_> = (0..count).map(acquire).collect();
    let mut leases = Vec::new();
    for lease in acquiring {
        leases.push(lease.await.unwrap());
    }
    leases
}
