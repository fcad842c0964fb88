//! Is a replay right? Records a load on PostgreSQL at one size, predicts others, and measures them.
//!
//! `cargo build --release -p cenote-cli --features postgres && cargo run --release -p cenote-cli
//! --features postgres --example replay_proof -- URL`
//!
//! All runs have the same arrivals and the same statements. A statement sleeps on the server, so
//! that two cores are enough. Callers come in bursts, so that every size has waits.

use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use cenote_postgres::Pool;
use cenote_telemetry::trace::{Outcome, Recorded, Trace};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::sleep;

const RECORDED: usize = 14;
const SIZES: [usize; 5] = [8, 11, 14, 17, 20];
const LASTS: Duration = Duration::from_secs(40);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args()
        .nth(1)
        .ok_or("name the URL of a PostgreSQL server")?;
    let folder = tempfile::tempdir()?;
    let load = load();
    let trace = folder.path().join("recorded.trace");
    measure(&url, RECORDED, &load, &trace).await?;
    let predicted = predict(&trace)?;
    println!("size  wait      measured  predicted");
    for (size, row) in SIZES.iter().zip(predicted) {
        let file = folder.path().join(format!("{size}.trace"));
        let waits = measure(&url, *size, &load, &file).await?;
        for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
            let measured = waits[((waits.len() - 1) as f64 * quantile) as usize];
            let best = row["best"]["wait_ms"][name].as_f64().unwrap_or(f64::NAN);
            let worst = row["worst"]["wait_ms"][name].as_f64();
            let said = match worst {
                None => format!(
                    "{best:.1} ms, off by {:+.0} %",
                    (best / measured - 1.0) * 100.0
                ),
                Some(worst) => {
                    let inside = (best..=worst).contains(&measured);
                    format!("{best:.1} to {worst:.1} ms, inside: {inside}")
                }
            };
            println!("{size:>4}  {name}  {measured:>9.1} ms  {said}");
        }
    }
    Ok(())
}

/// When a caller comes, and for how long its statement sleeps.
fn load() -> Vec<(Duration, f64)> {
    let mut random = fastrand::Rng::with_seed(3);
    let (mut at, mut calls) = (0.0, Vec::new());
    while at < LASTS.as_secs_f64() {
        // A burst asks for 24 connections, and a calm for one.
        let per_second = if at % 4.0 < 1.0 { 120.0 } else { 5.0 };
        at += -(1.0 - random.f64()).ln() / per_second;
        calls.push((Duration::from_secs_f64(at), 0.1 + 0.2 * random.f64()));
    }
    calls
}

/// Runs the load with this size. Returns how long its callers waited in milliseconds, in order.
async fn measure(
    url: &str,
    size: usize,
    load: &[(Duration, f64)],
    file: &Path,
) -> Result<Vec<f64>, Box<dyn Error>> {
    let pool = Pool::from_url(url).name("proof").max_size(size);
    let pool = pool.acquire_timeout(Duration::from_secs(30)).build()?;
    let mut warm = Vec::new();
    for _ in 0..size {
        warm.push(pool.acquire().await?);
    }
    drop(warm);
    let recording = Trace::to_file(file).start(&pool)?;
    let start = now();
    let mut callers = JoinSet::new();
    for &(at, sleeps) in load {
        sleep((start + at).saturating_duration_since(now())).await;
        let pool = pool.clone();
        callers.spawn(async move { pool.execute("select pg_sleep($1)", &[&sleeps]).await });
    }
    while let Some(done) = callers.join_next().await {
        done??;
    }
    recording.end()?;
    let trace = Recorded::read(File::open(file)?)?;
    let granted = trace
        .visits
        .iter()
        .filter(|it| it.outcome != Outcome::TimedOut);
    let mut waits: Vec<f64> = granted.map(|it| it.waited.as_secs_f64() * 1e3).collect();
    waits.sort_by(f64::total_cmp);
    Ok(waits)
}

/// Asks the program, which is beside the folder of the examples.
fn predict(trace: &Path) -> Result<Vec<Value>, Box<dyn Error>> {
    let example = std::env::current_exe()?;
    let folder = example.parent().and_then(Path::parent).map(PathBuf::from);
    let program = folder.unwrap_or_default().join("cenote");
    let sizes = SIZES.map(|size| size.to_string()).join(",");
    let run = Command::new(program)
        .arg("replay")
        .arg(trace)
        .args(["--json", "--max-size", &sizes])
        .output()?;
    let mut report: Value = serde_json::from_slice(&run.stdout)?;
    eprintln!("{}", report["stretch"]);
    let rows = report["sizes"].take();
    Ok(rows.as_array().cloned().unwrap_or_default())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the pool; this is a stopwatch"
)]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}
