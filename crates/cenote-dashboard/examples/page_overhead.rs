//! What does the page cost a trip of one task through a pool?
//! Run: cargo run --release -p cenote-dashboard --example page_overhead

use cenote::{Closures, Pool};
use cenote_dashboard::Dashboard;

/// A round takes less than a millisecond, so that some rounds are undisturbed on a busy machine.
const TRIPS: u32 = 5_000;
const ROUNDS: usize = 500;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    println!("without a page: {:.1} ns", measure(&pool).await);
    let page = Dashboard::new().start();
    println!("with a page:    {:.1} ns", measure(&pool).await);
    drop(page);
    println!("after its end:  {:.1} ns", measure(&pool).await);
    Ok(())
}

/// Returns the time of one trip in nanoseconds, of the fastest round.
#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the pool; this measures"
)]
async fn measure(pool: &Pool<Closures<()>>) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let begun = std::time::Instant::now();
        for _ in 0..TRIPS {
            drop(pool.acquire().await);
        }
        best = best.min(begun.elapsed().as_secs_f64() * 1e9 / f64::from(TRIPS));
        // The task of the page runs in between.
        tokio::task::yield_now().await;
    }
    best
}
