//! S9 and S10: an empty pool whose connects take 50 ms. In S9 500 tasks come at once. In S10 one
//! task comes that never waits longer than 10 ms.

use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::timeout;

use crate::harness::backend::Backend;
use crate::harness::clock::now;
use crate::harness::peer::{Peer, Setup};
use crate::harness::results::Figure;
use crate::harness::runtime::{Runtime, Work, together};

const TASKS: usize = 500;
const SIZE: usize = 10;
const CONNECT: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_millis(10);
/// A task that gave up so often will never succeed.
const ATTEMPTS: usize = 20;

/// S9: measures until all tasks were served.
pub fn start<P: Peer>(runtime: Runtime) -> Vec<Figure> {
    let setup = setup();
    let backend = setup.backend.clone();
    let millis = runtime.run(async move {
        let pool = P::build(&setup).await;
        let started = now();
        let tasks = (0..TASKS).map(|_| -> Work<()> {
            let pool = pool.clone();
            Box::pin(async move {
                let guard = pool.acquire().await;
                yield_now().await;
                drop(guard);
            })
        });
        together(tasks.collect()).await;
        started.elapsed().as_secs_f64() * 1e3
    });
    vec![
        ("ms", millis),
        ("connects", backend.census().begun() as f64),
    ]
}

/// S10: counts the attempts until one succeeds. The count is infinite if none does.
pub fn impatient<P: Peer>(runtime: Runtime) -> Vec<Figure> {
    let setup = setup();
    let backend = setup.backend.clone();
    let attempt = runtime.run(async move {
        let pool = P::build(&setup).await;
        for attempt in 1..=ATTEMPTS {
            if timeout(PATIENCE, pool.acquire()).await.is_ok() {
                return attempt as f64;
            }
        }
        f64::INFINITY
    });
    vec![
        ("attempt", attempt),
        ("connects", backend.census().begun() as f64),
    ]
}

fn setup() -> Setup {
    Setup {
        backend: Backend::new(CONNECT),
        ..Setup::of_size(SIZE)
    }
}
