//! What do the exporters cost a trip of one task through a pool?
//! Run: cargo run --release -p cenote-telemetry --all-features --example telemetry_overhead

use std::sync::Arc;
use std::time::Duration;

use cenote::event::Observer;
use cenote::{Closures, Pool};
use cenote_telemetry::{Facade, Otel, Pools, Prometheus, Sites};
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};

/// A round takes less than a millisecond, so that some rounds are undisturbed on a busy machine.
const TRIPS: u32 = 5_000;
const ROUNDS: usize = 500;

/// An observer that does nothing: what it costs to have one.
struct Deaf;

impl Observer for Deaf {}

/// Returns the time of one trip in nanoseconds.
#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the pool; this measures"
)]
async fn measure(pool: &Pool<Closures<()>>) -> f64 {
    let begun = std::time::Instant::now();
    for _ in 0..TRIPS {
        drop(pool.acquire().await);
    }
    let took: Duration = begun.elapsed();
    took.as_secs_f64() * 1e9 / f64::from(TRIPS)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let build = || Pool::from_fn(async || Ok::<_, &str>(())).build();
    let reader = PeriodicReader::builder(InMemoryMetricExporter::default()).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    let meter = provider.meter("cenote");
    let plain = build()?;
    let deaf = build()?;
    deaf.attach(Arc::new(Deaf));
    let sites = build()?;
    sites.attach(Arc::new(Sites::new(100)));
    let prometheus = build()?;
    let _prometheus = Prometheus::new(Pools::of(&prometheus));
    let both = build()?;
    both.attach(Arc::new(Sites::new(100)));
    let _both = Prometheus::new(Pools::of(&both));
    let facade = build()?; // without a recorder of the program
    let _facade = Facade::new(Pools::of(&facade));
    let otel = build()?;
    Otel::register(&meter, Pools::of(&otel));
    let all = build()?;
    all.attach(Arc::new(Sites::new(100)));
    let _all = (
        Prometheus::new(Pools::of(&all)),
        Facade::new(Pools::of(&all)),
    );
    Otel::register(&meter, Pools::of(&all));

    let pools = [
        ("no observer", plain),
        ("an observer that does nothing", deaf),
        ("sites", sites),
        ("prometheus", prometheus),
        ("prometheus and sites", both),
        ("metrics, without a recorder", facade),
        ("otel, with the SDK", otel),
        ("all of them", all),
    ];
    let mut best = [f64::MAX; 8];
    for _ in 0..ROUNDS {
        for ((_, pool), best) in pools.iter().zip(&mut best) {
            *best = best.min(measure(pool).await);
        }
    }
    for ((name, _), best) in pools.iter().zip(best) {
        println!("{best:7.1} ns  {name}");
    }
    Ok(())
}
