//! The plan: everything that a seed decides before the play begins. Generators derived from the
//! seed decide the rest.

use std::time::Duration;

use cenote::Config;
use cenote::config::{IdleOrder, Nested, OnOpenError, WarmUp};
use fastrand::Rng;

use super::faults::Faults;

/// Something wrong on purpose. An oracle that cannot fail proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// The manager opens the same resource twice.
    Twins,
    /// The manager opens more resources than it was asked for, and keeps them alive.
    Hoarder,
    /// A client loses a lease and claims to have returned it.
    LostLease,
    /// The oracle is told that `max_size` is one less.
    SmallerCap,
    /// The oracle is told that the last in the queue came first.
    WrongOrder,
    /// The oracle is told that every deadline is earlier than it is.
    EarlyDeadline,
    /// The oracle looks for other wakers than those of the last polls.
    LostWaker,
    /// The oracle is told that every grant came a second later than it did.
    EarlyDue,
    /// The oracle is told that the breaker was always active.
    NeverInactive,
    /// A client claims to have one permit less than it has.
    LostPlace,
    /// The oracle is not told of checks that went well.
    NoProof,
}

#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) kind: Kind,
    pub(super) lie: Option<Lie>,
    pub(super) config: Config,
    pub(super) faults: Faults,
    pub(super) clients: usize,
    /// How many actions each client takes.
    pub(super) steps: usize,
    /// The longest pause or hold of a client, in milliseconds.
    pub(super) pace: u64,
    /// After this long the faults stop and no client begins anything new.
    pub(super) horizon: Duration,
    /// How many of 100 turns are skipped though a client could be polled.
    pub(super) lazy: u8,
    /// How many of 100 steps no oracle looks at the pool. A look closes the trays of the pool.
    pub(super) blind: u8,
    pub(super) before_acquire: bool,
    pub(super) before_release: bool,
    /// Failures in a row until the strategy trips, and the time until it recovers.
    pub(super) strategy: Option<(u32, Duration)>,
    /// How many of 100 actions control the whole pool.
    pub(super) control: u8,
    pub(super) may_close: bool,
    pub(super) may_forget: bool,
    /// The play ends with the drop of the last handle, not with a close.
    pub(super) ends_by_drop: bool,
    /// How many of 100 calls of user code call back into the pool.
    pub(super) meddle: u8,
    /// How many of 100 polls of an acquire are followed by another poll for no reason.
    pub(super) spurious: u8,
}

/// Which kind of pool is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A `Pool`.
    Threads,
    /// A `LocalPool`.
    OneThread,
}

impl Kind {
    /// The flag of `cargo xtask sim` for this kind.
    pub(super) fn flag(self) -> &'static str {
        match self {
            Self::Threads => "",
            Self::OneThread => " --local",
        }
    }
}

impl Plan {
    pub(super) fn draw(seed: u64, kind: Kind, lie: Option<Lie>) -> Self {
        let mut rng = Rng::with_seed(seed);
        let rng = &mut rng;
        let mut plan = Self {
            seed,
            kind,
            lie,
            config: config(rng),
            faults: Faults::draw(rng),
            clients: rng.usize(1..=6),
            steps: rng.usize(1..=8),
            pace: one_of(rng, &[0, 2, 20, 300, 3000]),
            horizon: Duration::from_millis(rng.u64(1..=20_000)),
            lazy: one_of(rng, &[0, 20, 60]),
            blind: one_of(rng, &[0, 0, 80, 95, 100]),
            before_acquire: rng.u8(0..6) == 0,
            before_release: rng.u8(0..6) == 0,
            strategy: (rng.u8(0..4) == 0)
                .then(|| (rng.u32(1..=3), Duration::from_millis(rng.u64(1..=500)))),
            control: one_of(rng, &[0, 10, 30]),
            may_close: rng.u8(0..8) == 0,
            may_forget: rng.u8(0..8) == 0,
            ends_by_drop: rng.u8(0..4) == 0,
            meddle: 0,
            spurious: 0,
        };
        if plan.blind > 0 && rng.u8(0..4) != 0 {
            plan.go_by_tray(rng);
        }
        plan.meddle = one_of(rng, &[0, 2, 10, 40]);
        plan.spurious = one_of(rng, &[0, 5, 50]);
        plan
    }

    /// Changes the plan to one of the few in which a resource can change hands by its tray.
    fn go_by_tray(&mut self, rng: &mut Rng) {
        self.before_acquire = false;
        self.before_release = false;
        let config = &mut self.config;
        config.idle_order = IdleOrder::Hot;
        config.check_on_return = false;
        config.check_after_idle = config.check_after_idle.filter(|after| !after.is_zero());
        if config.nested == Nested::Deny {
            config.nested = Nested::Report;
        }
        if rng.bool() {
            config.min_idle = 0;
        }
    }

    /// Returns how soon the pool must be back to full service after the faults stop. By then
    /// hanging callbacks have timed out, and the longest back-off of an open has passed.
    pub(super) fn recovers_within(&self) -> Duration {
        let config = &self.config;
        let open = config.open_timeout.unwrap_or_default();
        let hung =
            open + config.check_timeout * 3 + config.clean_timeout * 2 + config.close_timeout;
        hung + Duration::from_secs(6)
    }
}

fn config(rng: &mut Rng) -> Config {
    let max_size = rng.usize(1..=4);
    let rarely_some = |rng: &mut Rng, longest| (rng.u8(0..3) == 0).then(|| millis(rng, longest));
    Config {
        name: Some("sim".to_owned()),
        max_size,
        min_size: if rng.bool() {
            0
        } else {
            rng.usize(0..=max_size)
        },
        min_idle: if rng.bool() {
            0
        } else {
            rng.usize(0..=max_size)
        },
        acquire_timeout: (rng.u8(0..4) != 0).then(|| millis(rng, 5000)),
        open_timeout: Some(millis(rng, 5000)),
        max_opening: rng.usize(1..=4),
        on_open_error: one_of(rng, &[OnOpenError::Fail, OnOpenError::Retry]),
        idle_timeout: rarely_some(rng, 2000),
        max_lifetime: rarely_some(rng, 5000).map(not_too_short),
        lifetime_jitter: rng.f64(),
        max_uses: (rng.u8(0..3) == 0).then(|| rng.u64(1..=4)),
        check_after_idle: match rng.u8(0..4) {
            0 => None,
            1 => Some(Duration::ZERO),
            _ => Some(millis(rng, 1000)),
        },
        check_on_return: rng.u8(0..4) == 0,
        check_timeout: millis(rng, 3000),
        clean_timeout: millis(rng, 3000),
        close_timeout: millis(rng, 3000),
        heartbeat_interval: rarely_some(rng, 500).map(not_too_short),
        upkeep_interval: millis(rng, 30_000),
        slow_acquire: Config::default().slow_acquire,
        leak_after: rarely_some(rng, 500),
        stuck_after: millis(rng, 5000),
        idle_order: one_of(rng, &[IdleOrder::Hot, IdleOrder::Oldest]),
        max_waiters: (rng.u8(0..4) == 0).then(|| rng.usize(0..=3)),
        nested: one_of(rng, &[Nested::Allow, Nested::Report, Nested::Deny]),
        warm_up: one_of(rng, &[WarmUp::Required, WarmUp::BestEffort]),
        probes: rng.usize(1..=2),
        self_probe: rng.bool(),
    }
}

/// A shorter interval makes long stories that tell nothing new.
fn not_too_short(interval: Duration) -> Duration {
    interval + Duration::from_millis(20)
}

/// Draws one millisecond to `longest` of them. Short durations are as likely as long ones.
pub(super) fn millis(rng: &mut Rng, longest: u64) -> Duration {
    let longest = if rng.bool() { longest } else { longest / 20 };
    Duration::from_millis(rng.u64(1..=longest.max(1)))
}

pub(super) fn one_of<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.usize(..choices.len())]
}
