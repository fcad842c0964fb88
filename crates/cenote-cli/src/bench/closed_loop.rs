//! Callers that ask again as soon as they are served: how much the pool and the server can do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::figures::Figures;
use crate::clock::now;
use crate::failure::Failure;
use crate::service::Service;

/// A server that refuses at once must not make the callers spin.
const AFTER_ERROR: Duration = Duration::from_millis(5);

pub(crate) async fn closed_loop(
    service: &Arc<Service>,
    callers: usize,
    lasts: Duration,
) -> Result<Figures, Failure> {
    let started = now();
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        tasks.spawn(call(Arc::clone(service), started + lasts));
    }
    let mut figures = Figures::new()?;
    while let Some(part) = tasks.join_next().await {
        figures.add(part??)?;
    }
    figures.took = started.elapsed();
    Ok(figures)
}

async fn call(service: Arc<Service>, ends: Instant) -> Result<Figures, Failure> {
    let mut figures = Figures::new()?;
    loop {
        let started = now();
        if started >= ends {
            return Ok(figures);
        }
        let result = service.run().await;
        let is_error = result.is_err();
        figures.record(started.elapsed(), result);
        if is_error {
            sleep(AFTER_ERROR).await;
        }
    }
}
