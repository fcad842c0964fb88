//! Times in steps of 1, 2, 5, 10, … for people to look at.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::out::short_time;

/// The part of all operations that took at most `up_to`, and more than the step before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bucket {
    pub(super) up_to: Duration,
    pub(super) part: f64,
}

/// Returns the steps from the first to the last with an operation in it.
pub(super) fn buckets(times: &Histogram<u64>) -> Vec<Bucket> {
    let all = times.len().max(1) as f64;
    let mut recorded = times.iter_recorded().peekable();
    let mut found = Vec::new();
    for up_to in steps() {
        let mut count = 0;
        while let Some(value) = recorded.next_if(|value| value.value_iterated_to() <= up_to) {
            count += value.count_at_value();
        }
        if count > 0 || !found.is_empty() {
            found.push(Bucket {
                up_to: Duration::from_nanos(up_to),
                part: count as f64 / all,
            });
        }
        if recorded.peek().is_none() {
            break;
        }
    }
    found
}

/// From a microsecond on.
fn steps() -> impl Iterator<Item = u64> {
    (3..12).flat_map(|power| [1, 2, 5].map(|step| step * 10_u64.pow(power)))
}

const WIDEST: f64 = 50.0;

/// Returns a bar for each step.
pub(super) fn show(buckets: &[Bucket]) -> String {
    let most = buckets.iter().map(|bucket| bucket.part).fold(0.0, f64::max);
    let mut text = String::new();
    for Bucket { up_to, part } in buckets {
        let width = (part / most.max(1e-9) * WIDEST).round() as usize;
        // A few operations are still worth a mark.
        let bar = if width == 0 && *part > 0.0 {
            "▏".to_owned()
        } else {
            "█".repeat(width)
        };
        let up_to = short_time(*up_to);
        text += &format!("  ≤ {up_to:>8}  {:>6.2} %  {bar}\n", part * 100.0);
    }
    text
}

#[cfg(test)]
mod tests;
