//! `Pool::config` shows the settings that are in effect, and every setting that can be off can be
//! set back to off.

use std::time::Duration;

use cenote::config::{IdleOrder, Nested, OnOpenError, WarmUp};
use cenote::{Config, Pool};
use cenote_testkit::Rig;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn without_settings_the_defaults_are_in_effect_and_the_name_is_generated() {
    let pool = Rig::new(|pool| pool).pool;

    let config = pool.config();

    assert_eq!(config.name.as_deref(), Some(pool.name()));
    let defaults = Config {
        name: config.name.clone(),
        ..Config::default()
    };
    assert_eq!(config, defaults);
}

#[test]
fn settings_of_the_builder_are_in_effect() {
    let pool = Rig::new(|pool| {
        let pool = pool.name("orders").max_size(7).min_idle(2);
        pool.idle_order(IdleOrder::Oldest).idle_timeout(SECOND)
    });

    let config = pool.pool.config();

    let expected = Config {
        name: Some("orders".to_owned()),
        max_size: 7,
        min_idle: 2,
        idle_order: IdleOrder::Oldest,
        idle_timeout: Some(SECOND),
        ..Config::default()
    };
    assert_eq!(config, expected);
}

#[test]
fn a_pool_can_be_built_again_from_its_settings() {
    let first = Rig::new(|pool| pool.name("orders").max_uses(9).leak_after(None)).pool;

    let second = Rig::new(|pool| pool.config(first.config())).pool;

    assert_eq!(second.config(), first.config());
}

#[test]
fn a_resize_is_in_effect_and_a_refused_one_is_not() {
    let pool = Rig::new(|pool| pool.max_size(4).min_size(2)).pool;

    pool.resize(9).unwrap();
    pool.resize(1).unwrap_err();

    assert_eq!((pool.config().max_size, pool.status().max_size), (9, 9));
}

#[tokio::test(start_paused = true)]
async fn a_closed_pool_still_shows_its_settings() {
    let pool = Rig::new(|pool| pool.name("orders").max_size(3)).pool;
    let before = pool.config();

    pool.close();

    assert_eq!(pool.config(), before);
}

#[test]
fn every_setting_that_can_be_off_can_be_set_back_to_off() {
    let set = Pool::from_fn(async || Ok::<_, &str>(()))
        .acquire_timeout(SECOND)
        .open_timeout(SECOND)
        .idle_timeout(SECOND)
        .max_lifetime(SECOND)
        .max_uses(5)
        .check_after_idle(SECOND)
        .heartbeat_interval(SECOND)
        .leak_after(SECOND)
        .max_waiters(3);

    let pool = set
        .acquire_timeout(None)
        .open_timeout(None)
        .idle_timeout(None)
        .max_lifetime(None)
        .max_uses(None)
        .check_after_idle(None)
        .heartbeat_interval(None)
        .leak_after(None)
        .max_waiters(None)
        .build()
        .unwrap();

    let expected = Config {
        name: pool.config().name,
        acquire_timeout: None,
        open_timeout: None,
        idle_timeout: None,
        max_lifetime: None,
        max_uses: None,
        check_after_idle: None,
        heartbeat_interval: None,
        leak_after: None,
        max_waiters: None,
        ..Config::default()
    };
    assert_eq!(pool.config(), expected);
}

#[test]
fn a_setting_that_can_be_off_takes_an_option_as_well() {
    let pool = Pool::from_fn(async || Ok::<_, &str>(()))
        .name(String::from("orders"))
        .acquire_timeout(Some(SECOND))
        .max_uses(Some(5))
        .max_waiters(Some(0))
        .build()
        .unwrap();

    let config = pool.config();

    assert_eq!(pool.name(), "orders");
    assert_eq!(config.acquire_timeout, Some(SECOND));
    assert_eq!((config.max_uses, config.max_waiters), (Some(5), Some(0)));
}

#[test]
fn the_builder_sets_every_field() {
    let seconds = Duration::from_secs;
    let config = Config {
        name: Some("all".to_owned()),
        max_size: 20,
        min_size: 2,
        min_idle: 3,
        acquire_timeout: Some(seconds(1)),
        open_timeout: Some(seconds(2)),
        max_opening: 5,
        on_open_error: OnOpenError::Retry,
        idle_timeout: Some(seconds(3)),
        max_lifetime: Some(seconds(4)),
        lifetime_jitter: 0.5,
        max_uses: Some(6),
        check_after_idle: Some(seconds(7)),
        check_on_return: true,
        check_timeout: seconds(8),
        clean_timeout: seconds(9),
        close_timeout: seconds(10),
        heartbeat_interval: Some(seconds(11)),
        upkeep_interval: seconds(12),
        leak_after: Some(seconds(13)),
        slow_acquire: Some(seconds(17)),
        stuck_after: seconds(14),
        idle_order: IdleOrder::Oldest,
        max_waiters: Some(15),
        nested: Nested::Deny,
        warm_up: WarmUp::BestEffort,
        probes: 16,
        self_probe: false,
    };

    let built = Pool::from_fn(async || Ok::<_, &str>(()))
        .name("all")
        .max_size(20)
        .min_size(2)
        .min_idle(3)
        .acquire_timeout(seconds(1))
        .open_timeout(seconds(2))
        .max_opening(5)
        .on_open_error(OnOpenError::Retry)
        .idle_timeout(seconds(3))
        .max_lifetime(seconds(4))
        .lifetime_jitter(0.5)
        .max_uses(6)
        .check_after_idle(seconds(7))
        .check_on_return(true)
        .check_timeout(seconds(8))
        .clean_timeout(seconds(9))
        .close_timeout(seconds(10))
        .heartbeat_interval(seconds(11))
        .upkeep_interval(seconds(12))
        .leak_after(seconds(13))
        .slow_acquire(seconds(17))
        .stuck_after(seconds(14))
        .idle_order(IdleOrder::Oldest)
        .max_waiters(15)
        .nested(Nested::Deny)
        .warm_up(WarmUp::BestEffort)
        .probes(16)
        .self_probe(false)
        .build()
        .unwrap();

    assert_eq!(built.config(), config);
}
