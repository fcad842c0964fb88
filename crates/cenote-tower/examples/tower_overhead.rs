//! What does the scope cost a request that uses no resource?
//! Run: cargo run --release -p cenote-tower --example tower_overhead

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Duration;

use cenote_tower::{ScopeLayer, Text};
use http::{Request, Response};
use tower::{Layer, Service, service_fn};

/// A round takes about a millisecond, so that some rounds are undisturbed even on a busy machine.
const REQUESTS: u32 = 5_000;
const ROUNDS: usize = 2_000;
/// The limit in nanoseconds, for a release build.
const PROMISED: f64 = 100.0;

async fn hello(request: Request<()>) -> Result<Response<Text>, Infallible> {
    black_box(request);
    Ok(Response::new(Text::default()))
}

/// Returns the time of one request in nanoseconds.
#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the pool; this measures"
)]
async fn measure<S, B>(service: &mut S) -> f64
where
    S: Service<Request<()>, Response = Response<B>, Error = Infallible>,
{
    let begun = std::time::Instant::now();
    for _ in 0..REQUESTS {
        let Ok(response) = service.call(Request::new(())).await;
        black_box(response);
    }
    let took: Duration = begun.elapsed();
    took.as_secs_f64() * 1e9 / f64::from(REQUESTS)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut plain = service_fn(hello);
    let mut scoped = ScopeLayer::new().layer(service_fn(hello));
    let mut best = [f64::MAX; 2];
    for _ in 0..ROUNDS {
        best[0] = best[0].min(measure(&mut plain).await);
        best[1] = best[1].min(measure(&mut scoped).await);
    }
    let [without, with] = best;
    let costs = with - without;
    println!(
        "best of {ROUNDS} rounds: {without:.0} ns without a scope, {with:.0} ns with one, difference {costs:.0} ns"
    );
    if !cfg!(debug_assertions) {
        assert!(costs < PROMISED, "{PROMISED} ns at most");
    }
}
