//! The tick: the time as the alarm's thread has last read it, for those who ask so often that reading a clock is most of what they do.
//!
//! A thread that reads the time many thousand times a second asks the alarm's thread to write it down every few milliseconds, for a second at
//! a time. Meanwhile a reading is one load of memory that nobody else writes to. Where fewer ask, nothing ticks, and each reads the clock.

use std::cell::Cell;
use std::time::Duration;

use crate::alarm;
use crate::moment::Moment;
use crate::rt;
use crate::sync::{Apart, AtomicU64, Ordering};

/// How often the time is written down: as often as most kernels do for their coarse clock.
#[cfg(not(cenote_model))]
const PACE: Duration = Duration::from_millis(4);

/// For how long, after somebody has asked for it.
const SPELL: Duration = Duration::from_secs(1);

/// Every so many readings a thread looks at the clock itself.
const READINGS: u32 = 1024;

/// Whoever reads so often in less than this reads often.
const OFTEN: Duration = Duration::from_millis(50);

/// A tick that is older than this was left behind: by a thread that did not survive a fork, or is not allowed to run.
const LOST: Duration = Duration::from_millis(100);

/// In nanoseconds; zero while nothing ticks.
static TICK: Apart<AtomicU64> = Apart(AtomicU64::new(0));

/// Until when it ticks.
static UNTIL: Apart<AtomicU64> = Apart(AtomicU64::new(0));

thread_local! {
    /// How many readings are left until this thread looks at the clock, and what it showed then.
    static LEFT: Cell<u32> = const { Cell::new(READINGS) };
    static LOOKED_AT: Cell<u64> = const { Cell::new(0) };
}

/// The real time, a few milliseconds late at most.
#[inline]
pub(crate) fn nearly_now() -> Moment {
    // `LocalKey::set` is a call; this is not.
    let left = LEFT.with(|left| {
        left.set(left.get().wrapping_sub(1));
        left.get()
    });
    let tick = TICK.0.load(Ordering::Relaxed);
    if left == 0 || tick == 0 {
        return look(left);
    }
    Moment::from_nanoseconds(tick)
}

/// Reads the clock.
#[inline(never)]
fn look(left: u32) -> Moment {
    let now = rt::nearly_now();
    if left == 0 || left > READINGS {
        LEFT.set(READINGS);
        let before = LOOKED_AT.replace(now.nanoseconds());
        reckon(Moment::from_nanoseconds(before), now);
    }
    now
}

/// This thread has read the time [`READINGS`] times since `before`.
#[cold]
fn reckon(before: Moment, now: Moment) {
    let tick = TICK.0.load(Ordering::Relaxed);
    if tick > 0 && now > Moment::from_nanoseconds(tick) + LOST {
        TICK.0.store(0, Ordering::Relaxed);
    }
    if now.saturating_duration_since(before) < OFTEN {
        let until = (now + SPELL).nanoseconds();
        let was = UNTIL.0.swap(until, Ordering::Relaxed);
        if was < now.nanoseconds() {
            alarm::rouse();
        }
    }
}

/// Writes the time down, if anybody wants it. Answers with when to do it again. Only the alarm's thread does this.
#[cfg(not(cenote_model))]
pub(crate) fn tick(now: Moment) -> Option<Duration> {
    let wanted = now.nanoseconds() < UNTIL.0.load(Ordering::Relaxed);
    let tick = if wanted { now.nanoseconds() } else { 0 };
    if TICK.0.load(Ordering::Relaxed) != tick {
        TICK.0.store(tick, Ordering::Relaxed);
    }
    wanted.then_some(PACE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time is one, and so is whoever writes it down: these tests are one.
    #[test]
    fn who_reads_often_is_told_the_time_and_who_does_not_reads_the_clock() {
        let spell = rt::now() + 20 * SPELL;
        let mut ticked = false;
        while rt::now() < spell && !ticked {
            for _ in 0..2 * READINGS {
                let before = rt::nearly_now();
                let shown = nearly_now();
                assert!(shown <= rt::now(), "it is ahead");
                // Whoever writes it down may be put off for a while on a busy machine.
                let behind = before.saturating_duration_since(shown);
                assert!(behind < 2 * SPELL, "{behind:?} behind");
            }
            ticked = TICK.0.load(Ordering::Relaxed) > 0;
        }
        assert!(ticked, "nobody wrote the time down");

        let quiet = rt::now() + 20 * SPELL;
        while TICK.0.load(Ordering::Relaxed) > 0 && rt::now() < quiet {
            std::thread::sleep(PACE);
        }
        assert_eq!(TICK.0.load(Ordering::Relaxed), 0, "nobody asks any more");

        // As after a fork: a tick that nobody goes on with.
        let left_behind = rt::now() - 2 * LOST;
        TICK.0.store(left_behind.nanoseconds(), Ordering::Relaxed);
        for _ in 0..=READINGS {
            nearly_now();
        }
        assert_ne!(TICK.0.load(Ordering::Relaxed), left_behind.nanoseconds());
    }
}
