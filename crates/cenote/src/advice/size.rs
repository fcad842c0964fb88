//! Whether the size of a pool fits its load, by Erlang's formula for callers that wait.

use std::time::Duration;

use super::{Advice, AdviceKind};
use crate::status::Status;

/// With less, the numbers say nothing.
const LEAST_LEASES: u64 = 100;
const LEAST_TIME: Duration = Duration::from_secs(10);

/// How many callers may have to wait, as a fraction, in a pool of the right size.
const MAY_WAIT: f64 = 0.01;

/// More waits than this are not explained by the load alone, if the size fits it.
const MANY_WAITS: f64 = 0.05;

/// A pool that is in use for more than this fraction of its size is full: its callers would use
/// more, and how much more cannot be seen.
const FULL: f64 = 0.95;

pub(super) fn advice(earlier: &Status, later: &Status, elapsed: Duration) -> Option<Advice> {
    let since = |read: fn(&Status) -> u64| read(later).saturating_sub(read(earlier));
    if since(|status| status.released) < LEAST_LEASES || elapsed < LEAST_TIME {
        return None;
    }
    let held = later.held_time.saturating_sub(earlier.held_time);
    let load = held.as_secs_f64() / elapsed.as_secs_f64();
    let size = later.max_size;
    let enough = enough(load);
    let waited = since(|status| status.waited);
    let asked = since(|status| status.acquired) + since(|status| status.timed_out);
    let share = waited as f64 / asked.max(1) as f64;
    let waits = later.wait_time.saturating_sub(earlier.wait_time);
    let mean = waits / u32::try_from(waited.max(1)).unwrap_or(u32::MAX);
    let percent = share * 100.0;
    let (kind, text) = if share > MAY_WAIT && load >= FULL * size as f64 {
        let text = format!(
            "offered load {load:.1} of {size}: the pool is always full, and {percent:.0} % of the \
             acquires waited {mean:.1?} on average: shorten leases or raise `max_size`"
        );
        (AdviceKind::TooSmall, text)
    } else if share > MAY_WAIT && enough > size {
        let text = format!(
            "offered load {load:.1}: {size} are too few, and {percent:.0} % of the acquires waited \
             {mean:.1?} on average; a `max_size` of {enough} would serve 99 % without a wait, by \
             Erlang C"
        );
        (AdviceKind::TooSmall, text)
    } else if share > MANY_WAITS && since(|status| status.opened) * 2 >= waited {
        let text = format!(
            "offered load {load:.1} of {size}, but {percent:.0} % of the acquires waited {mean:.1?} \
             on average, most of them for an open: raise `min_idle` or `idle_timeout`"
        );
        (AdviceKind::OpensOnDemand, text)
    } else if share > MANY_WAITS {
        let text = format!(
            "offered load {load:.1} of {size}, but {percent:.0} % of the acquires waited {mean:.1?} \
             on average: they come in bursts"
        );
        (AdviceKind::Bursts, text)
    } else if enough < size {
        let text = format!(
            "offered load {load:.1}: {size} are plenty, a `max_size` of {enough} would serve 99 % \
             without a wait, by Erlang C"
        );
        (AdviceKind::Plenty, text)
    } else {
        return None;
    };
    Some(Advice::new(kind, text))
}

/// Returns the least size at which 99 % of the callers do not wait. Each step computes the next
/// value of Erlang's formula for callers that are lost (B), and from it the one for callers that
/// wait (C).
pub(super) fn enough(load: f64) -> usize {
    let mut lost = 1.0;
    let mut size = 0;
    loop {
        size += 1;
        lost = load * lost / (size as f64 + load * lost);
        let used = load / size as f64;
        if used < 1.0 && lost / (1.0 - used * (1.0 - lost)) <= MAY_WAIT {
            return size;
        }
    }
}
