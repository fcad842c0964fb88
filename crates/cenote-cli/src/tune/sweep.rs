//! Tries sizes, first in growing steps, and then around the knee.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::client::Client;
use crate::bench::{Figures, closed_loop};
use crate::failure::Failure;
use crate::out::Countdown;
use crate::service::Service;

/// A size that reaches this part of the best throughput is enough. The best of many measurements is
/// a little too high.
const ENOUGH: f64 = 0.9;

/// A size that brings less than this part more than all before it brings nothing.
const MORE: f64 = 0.03;

/// After so many sizes in a row that bring nothing, the sweep ends.
const IN_VAIN: usize = 3;

/// The sweep goes on up to this size in any case: small sizes are near each other, and one
/// disturbance can hit all of them.
const AT_LEAST: usize = 12;

/// A measurement whose halves differ by more than this part was disturbed, and is made again.
const DISTURBED: f64 = 0.08;

/// How often a disturbed measurement is made again.
const AGAIN: usize = 2;

/// How often a size that just misses is tried again.
const RETRIES: usize = 3;

/// One size and what was measured with it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Point {
    pub(crate) size: usize,
    pub(crate) per_second: f64,
    /// How long a connection was in use on average, in milliseconds.
    pub(crate) use_ms: f64,
    /// How long the slowest hundredth of the operations took at least, with their wait.
    pub(crate) p99_ms: f64,
    /// How much the two halves of the measurement differ, as a part of their mean.
    pub(crate) noise: f64,
    /// How busy this program was, from 0 to 1.
    pub(crate) client_busy: f64,
}

/// All sizes that were tried, in their order, and the knee.
#[derive(Debug)]
pub(super) struct Sweep {
    pub(super) points: Vec<Point>,
    pub(super) knee: usize,
    /// The throughput was still growing at the largest size.
    pub(super) ends_early: bool,
}

impl Sweep {
    /// Returns how busy this program was where more connections brought nothing. Below the knee a
    /// program waits, whatever the limit is.
    pub(super) fn client_busy(&self) -> f64 {
        let beyond = self.points.iter().filter(|point| point.size >= self.knee);
        beyond.map(|point| point.client_busy).fold(0.0, f64::max)
    }

    pub(super) async fn run(
        service: &Arc<Service>,
        most: usize,
        step: Duration,
    ) -> Result<Self, Failure> {
        let mut points: Vec<Point> = Vec::new();
        let (mut best, mut in_vain) = (0.0, 0);
        for size in sizes(most) {
            let point = measure(service, size, step).await?;
            points.push(point);
            in_vain = if point.per_second > best * (1.0 + MORE) {
                0
            } else {
                in_vain + 1
            };
            best = f64::max(best, point.per_second);
            if in_vain >= IN_VAIN && size >= AT_LEAST {
                break;
            }
        }
        let ends_early = in_vain == 0 && points.len() > 1;
        let knee = refine(service, &mut points, step).await?;
        points.sort_by_key(|point| point.size);
        Ok(Self {
            points,
            knee,
            ends_early,
        })
    }
}

/// Halves the gap below the knee until it is small. A disturbance only makes a size look slower, so
/// the size that just misses is tried again.
async fn refine(
    service: &Arc<Service>,
    points: &mut Vec<Point>,
    step: Duration,
) -> Result<usize, Failure> {
    let best = points.iter().map(|it| it.per_second).fold(0.0, f64::max);
    let mut knee = knee(points);
    let mut retries = 0;
    loop {
        let smaller = points.iter().enumerate().filter(|(_, it)| it.size < knee);
        let Some((nth, lower)) = smaller.max_by_key(|(_, it)| it.size) else {
            return Ok(knee);
        };
        let gap = knee - lower.size;
        if gap > (knee / 10).max(1) {
            let point = measure(service, lower.size + gap / 2, step).await?;
            points.push(point);
            if point.per_second >= best * ENOUGH {
                knee = point.size;
            }
            continue;
        }
        if retries == RETRIES {
            return Ok(knee);
        }
        retries += 1;
        let again = measure(service, lower.size, step).await?;
        if again.per_second > points[nth].per_second {
            points[nth] = again;
        }
        if again.per_second < best * ENOUGH {
            return Ok(knee);
        }
        knee = again.size;
    }
}

/// Returns sizes that grow by a third to a half: 1, 2, 3, 4, 6, 8, 12, 16, 24, … and the largest.
fn sizes(most: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(2_usize), |power| power.checked_mul(2));
    let steps = powers.flat_map(|power| [power, power + power / 2]);
    let mut sizes = vec![1];
    sizes.extend(steps.take_while(|size| *size < most));
    if most > 1 {
        sizes.push(most);
    }
    sizes
}

/// Returns the least size that is enough.
fn knee(points: &[Point]) -> usize {
    let best = points
        .iter()
        .map(|point| point.per_second)
        .fold(0.0, f64::max);
    let enough = points
        .iter()
        .filter(|point| point.per_second >= best * ENOUGH);
    enough.map(|point| point.size).min().unwrap_or(1)
}

/// Measures a size. Of several measurements the calmest counts.
async fn measure(service: &Arc<Service>, size: usize, step: Duration) -> Result<Point, Failure> {
    service.resize(size)?;
    let mut calmest = measure_once(service, size, step).await?;
    for _ in 0..AGAIN {
        if calmest.noise <= DISTURBED {
            break;
        }
        let again = measure_once(service, size, step).await?;
        if again.noise < calmest.noise {
            calmest = again;
        }
    }
    Ok(calmest)
}

async fn measure_once(
    service: &Arc<Service>,
    size: usize,
    step: Duration,
) -> Result<Point, Failure> {
    // More callers than connections, so that no connection waits for a caller.
    let callers = size * 2;
    // Opens the connections, and fills caches.
    closed_loop(service, callers, step / 8).await?;
    let countdown = Countdown::start(format!("max_size {size:>3}"), step);
    let before = service.status();
    let client = Client::start();
    let first = closed_loop(service, callers, step / 2).await?;
    let second = closed_loop(service, callers, step / 2).await?;
    let client_busy = client.part();
    let after = service.status();
    drop(countdown);
    let rates = [first.per_second(), second.per_second()];
    let mean = (rates[0] + rates[1]) / 2.0;
    let mut both = first;
    both.add(second)?;
    check(&both, size)?;
    let used = after
        .held_time
        .saturating_sub(before.held_time)
        .as_secs_f64();
    let released = after.released.saturating_sub(before.released).max(1);
    Ok(Point {
        size,
        per_second: mean,
        use_ms: used * 1e3 / released as f64,
        p99_ms: both.quantile(0.99).as_secs_f64() * 1e3,
        noise: (rates[0] - rates[1]).abs() / mean.max(1e-9),
        client_busy,
    })
}

/// A size with errors says nothing about its speed.
fn check(figures: &Figures, size: usize) -> Result<(), Failure> {
    match &figures.first_error {
        None => Ok(()),
        Some(error) => Err(format!(
            "{} operations failed with `max_size` {size}: {error}; lower `--max-size`, or see \
             `cenote doctor`",
            figures.failed
        )
        .into()),
    }
}

#[cfg(test)]
pub(super) mod tests;
