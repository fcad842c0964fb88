//! Pools with odd limits, and odd numbers given to a pool: a pool that `build` accepts lends and
//! takes back, and nothing panics, neither here nor in a task of the pool. The clock is advanced by
//! hand, also by years. `cargo xtask fuzz` generates many more.

use std::cell::Cell;
use std::io;
use std::panic;
use std::sync::Once;
use std::time::{Duration, Instant};

use cenote::breaker::{ConsecutiveFailures, FailureRate};
use cenote::config::{IdleOrder, Nested, OnOpenError, WarmUp};
use cenote::{AcquireError, Config, Pool};
use cenote_testkit::clock::{advance, now};
use cenote_testkit::cut;
use proptest::prelude::*;
use proptest::sample::select;
use tokio::runtime::Builder;

use crate::{broken, settings};

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The largest `min_size` and `min_idle` here. A pool that must keep a billion resources would open
/// them, which takes too long for a test.
const KEPT: usize = 3;

/// From zero to `Duration::MAX`.
fn length() -> impl Strategy<Value = Duration> {
    let odd = [
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_millis(1),
        10 * YEAR,
        10 * YEAR + Duration::from_nanos(1),
        Duration::from_secs(u64::MAX / 2),
        Duration::MAX,
    ];
    prop_oneof![
        2 => select(odd.to_vec()),
        2 => (0..100_000_u64).prop_map(Duration::from_millis),
        1 => (0..10_u32).prop_map(|years| years * YEAR),
        1 => any::<Duration>(),
    ]
}

/// Mostly a duration that is allowed, so that most pools are built.
fn allowed() -> impl Strategy<Value = Duration> {
    length().prop_map(|length| length.clamp(Duration::from_nanos(1), 10 * YEAR))
}

fn count() -> impl Strategy<Value = usize> {
    prop_oneof![
        4 => 1..6_usize,
        1 => select(vec![0, usize::MAX, usize::MAX - 1, u32::MAX as usize, i64::MAX as usize]),
    ]
}

prop_compose! {
    fn lengths()(
        optional in prop::array::uniform8(prop::option::of(allowed())),
        required in prop::array::uniform5(allowed()),
        // One field that may be out of range.
        odd in prop::option::weighted(0.1, (0..12_usize, length())),
    ) -> ([Option<Duration>; 8], [Duration; 5]) {
        let (mut optional, mut required) = (optional, required);
        match odd {
            Some((field @ 0..7, length)) => optional[field] = Some(length),
            Some((field, length)) => required[field - 7] = length,
            None => {}
        }
        (optional, required)
    }
}

prop_compose! {
    fn config()(
        (optional, required) in lengths(),
        sizes in (count(), 0..=KEPT, 0..=KEPT, count(), count()),
        lifetime_jitter in prop_oneof![
            0.0..=1.0,
            select(vec![0.0, -0.0, 1.0, f64::NAN, f64::MIN_POSITIVE]),
        ],
        (max_uses, max_waiters) in (prop::option::of(1..=u64::MAX), prop::option::of(count())),
        choices in any::<[bool; 6]>(),
        nested in select(vec![Nested::Allow, Nested::Report, Nested::Deny]),
    ) -> Config {
        let [
            acquire_timeout, open_timeout, idle_timeout, max_lifetime, check_after_idle,
            heartbeat_interval, leak_after, slow_acquire,
        ] = optional;
        let [check_timeout, clean_timeout, close_timeout, upkeep_interval, stuck_after] = required;
        let (max_size, min_size, min_idle, max_opening, probes) = sizes;
        Config {
            name: choices[0].then(|| "odd".to_owned()),
            max_size, min_size, min_idle, max_opening, probes,
            acquire_timeout, open_timeout, idle_timeout, max_lifetime, check_after_idle,
            heartbeat_interval, leak_after, slow_acquire,
            check_timeout, clean_timeout, close_timeout, upkeep_interval, stuck_after,
            lifetime_jitter, max_uses, max_waiters, nested,
            on_open_error: if choices[1] { OnOpenError::Fail } else { OnOpenError::Retry },
            check_on_return: choices[2],
            self_probe: choices[5],
            idle_order: if choices[3] { IdleOrder::Hot } else { IdleOrder::Oldest },
            warm_up: if choices[4] { WarmUp::Required } else { WarmUp::BestEffort },
        }
    }
}

/// A call of the pool with an odd number.
#[derive(Clone, Debug)]
enum Ask {
    Acquire(Option<Duration>),
    AcquireUntil(Duration),
    /// An acquire that is dropped after some polls, while another lease is out.
    GiveUp(Duration, usize),
    Try,
    Warm,
    Resize(usize),
    Invalidate(Duration),
    CloseWithin(Duration),
    Turn(Duration),
}

fn ask() -> impl Strategy<Value = Ask> {
    prop_oneof![
        4 => prop::option::of(length()).prop_map(Ask::Acquire),
        2 => length().prop_map(Ask::AcquireUntil),
        2 => (length(), 0..4_usize).prop_map(|(limit, polls)| Ask::GiveUp(limit, polls)),
        1 => Just(Ask::Try),
        1 => Just(Ask::Warm),
        2 => count().prop_map(Ask::Resize),
        2 => length().prop_map(Ask::Invalidate),
        1 => length().prop_map(Ask::CloseWithin),
        4 => length().prop_map(|turn| Ask::Turn(turn.min(10 * YEAR))),
    ]
}

thread_local!(static PANICS: Cell<usize> = const { Cell::new(0) });

/// Runs `scene` in virtual time. A panic in any task of this thread fails it.
fn play(scene: impl Future<Output = Result<(), TestCaseError>>) -> Result<(), TestCaseError> {
    static COUNTED: Once = Once::new();
    COUNTED.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            PANICS.set(PANICS.get() + 1);
            report(info);
        }));
    });
    let before = PANICS.get();
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    runtime.block_on(scene)?;
    drop(runtime);
    prop_assert_eq!(PANICS.get(), before, "a task of the pool has panicked");
    Ok(())
}

type Plain = Pool<cenote::Closures<u8>>;

/// Asserts that an acquire is served: nothing is out and the backend is healthy.
async fn lends(pool: &Plain) -> Result<(), TestCaseError> {
    match pool.acquire().await {
        Err(AcquireError::Closed { .. }) if pool.is_closed() => Ok(()),
        acquired => {
            prop_assert!(acquired.is_ok(), "{:?}", acquired.err());
            Ok(())
        }
    }
}

async fn answer(pool: &Plain, ask: Ask) -> Result<(), TestCaseError> {
    match ask {
        Ask::Acquire(limit) => drop(pool.acquire_within(limit).await),
        Ask::AcquireUntil(after) => {
            let until: Option<Instant> = now().checked_add(after);
            if let Some(until) = until {
                drop(pool.acquire_by(until).await);
            }
        }
        Ask::GiveUp(limit, polls) => {
            let lease = pool.acquire().await;
            drop(cut(polls, pool.acquire_within(limit)).await);
            drop(lease);
        }
        Ask::Try => drop(pool.try_acquire()),
        Ask::Warm => drop(pool.warm().await),
        Ask::Resize(size) => {
            let before = pool.status().max_size;
            let resized = pool.resize(size);
            let now = if resized.is_ok() { size } else { before };
            prop_assert_eq!(pool.status().max_size, now);
            prop_assert!(resized.is_ok() || size < KEPT);
        }
        Ask::Invalidate(over) => pool.invalidate_over(over),
        Ask::CloseWithin(limit) => {
            let left = pool.close_within(limit).await;
            prop_assert!(
                left.is_empty() || limit < Duration::from_millis(2),
                "{left:?}"
            );
        }
        Ask::Turn(time) => advance(time).await,
    }
    let _ = (pool.status(), pool.health(), pool.leases());
    Ok(())
}

proptest! {
    #![proptest_config(settings(300))]

    #[test]
    fn a_pool_that_build_accepts_lends_and_takes_back(
        config in config(),
        asks in prop::collection::vec(ask(), 0..8),
    ) {
        let broken = broken(&config);
        let built = Pool::from_fn(async || Ok::<_, io::Error>(7_u8)).config(config).build();
        prop_assert_eq!(built.is_ok(), broken.is_empty());
        let Ok(pool) = built else { return Ok(()) };

        play(async move {
            lends(&pool).await?;
            for ask in asks {
                answer(&pool, ask).await?;
                lends(&pool).await?;
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_breaker_of_any_numbers_does_no_harm(
        threshold in any::<u32>(),
        rate in proptest::num::f64::ANY,
        (window, least) in (length(), any::<usize>()),
        (first, longest) in (length(), length()),
        turns in prop::collection::vec(length(), 0..6),
    ) {
        let down = || Pool::from_fn(async || Err::<u8, _>(io::Error::other("down")));
        let consecutive = ConsecutiveFailures::new(threshold).recover_after(first, longest);
        let by_rate = FailureRate::new(rate, window, least).recover_after(first, longest);
        let pools = [down().breaker(consecutive).build(), down().breaker(by_rate).build()];

        play(async move {
            for pool in pools.into_iter().flatten() {
                for turn in &turns {
                    prop_assert!(pool.acquire().await.is_err());
                    advance((*turn).min(10 * YEAR)).await;
                    let _ = (pool.status(), pool.health(), pool.breaker().state());
                }
                pool.breaker().probe();
                prop_assert!(pool.acquire().await.is_err());
            }
            Ok(())
        })?;
    }
}
