//! Run: cargo run -p cenote-examples --example cron
//!
//! How does a job without a runtime use a pool?

use std::error::Error;
use std::thread;
use std::time::Duration;

use cenote::Pool;

/// One run of the job, on an ordinary thread.
fn job(pool: &Pool<cenote::Closures<String>>, run: u32) -> Result<usize, Box<dyn Error>> {
    // Blocks this thread until a resource is free. Opens run on a thread of the library.
    let mut report = pool.acquire_blocking_within(Duration::from_secs(1))?;
    report.push_str(&format!("run {run}\n"));
    Ok(report.lines().count())
}

fn main() -> Result<(), Box<dyn Error>> {
    let pool = Pool::from_fn(async || Ok::<_, std::io::Error>(String::new()));
    let pool = pool.name("reports").max_size(1).build()?;
    for run in 1..=3 {
        let lines = job(&pool, run)?;
        println!("after run {run} the report has {lines} lines");
        assert_eq!(lines, run as usize, "the same report was lent again");
        thread::sleep(Duration::from_millis(20));
    }
    let status = pool.status();
    assert_eq!((status.opened, status.acquired, status.in_use), (1, 3, 0));
    pool.close();
    Ok(())
}
