//! The `metrics` facade, with a recorder that can be read.

use std::collections::HashMap;

use cenote::Pool;
use cenote_telemetry::{Facade, Pools};
use metrics::{Unit, with_local_recorder};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

use crate::story::{NAME, pool, tell};

type Seen = HashMap<(String, Vec<(String, String)>), (Option<Unit>, DebugValue)>;

/// Returns what the recorder has got, and empties it.
fn read(snapshotter: &Snapshotter) -> Seen {
    let all = snapshotter.snapshot().into_vec().into_iter();
    all.map(|(key, unit, help, value)| {
        assert!(help.is_some(), "{key:?} is described");
        let (_, key) = key.into_parts();
        let labels = key.labels().map(|it| (it.key().into(), it.value().into()));
        ((key.name().to_owned(), labels.collect()), (unit, value))
    })
    .collect()
}

fn of<'a>(seen: &'a Seen, name: &str, attribute: Option<(&str, &str)>) -> &'a DebugValue {
    let of_pool = ("db.client.connection.pool.name".to_owned(), NAME.to_owned());
    let attribute = attribute.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let labels = [of_pool].into_iter().chain(attribute).collect();
    let key = (name.to_owned(), labels);
    let (_, value) = seen
        .get(&key)
        .unwrap_or_else(|| panic!("no {key:?} in {seen:?}"));
    value
}

#[tokio::test(start_paused = true)]
async fn every_figure_is_exact() {
    let recorder = DebuggingRecorder::new();
    let pool = pool();
    let facade = with_local_recorder(&recorder, || Facade::new(Pools::of(&pool)));

    let _story = tell(pool).await;
    with_local_recorder(&recorder, || facade.report());
    let seen = read(&recorder.snapshotter());

    let state = |value| Some(("db.client.connection.state", value));
    let reason = |value| Some(("reason", value));
    for (name, attribute, expected) in [
        ("db.client.connection.count", state("idle"), 0.0),
        ("db.client.connection.count", state("used"), 1.0),
        ("db.client.connection.idle.max", None, 1.0),
        ("db.client.connection.idle.min", None, 0.0),
        ("db.client.connection.max", None, 1.0),
        ("db.client.connection.pending_requests", None, 1.0),
        ("cenote.opening", None, 0.0),
        ("cenote.oldest_wait", None, 0.05),
        ("cenote.held_time", None, 4.42),
        ("cenote.health", Some(("verdict", "busy")), 1.0),
    ] {
        let expected = DebugValue::Gauge(expected.into());
        assert_eq!(of(&seen, name, attribute), &expected, "{name}");
    }
    for (name, attribute, expected) in [
        ("db.client.connection.timeouts", None, 1),
        ("cenote.leaks", None, 2),
        ("cenote.closes", reason("discarded"), 1),
        ("cenote.closes", reason("idle"), 0),
        ("cenote.refusals", reason("rejected"), 1),
    ] {
        let expected = DebugValue::Counter(expected);
        assert_eq!(of(&seen, name, attribute), &expected, "{name}");
    }
    for (name, expected) in [
        ("db.client.connection.create_time", &[0.02, 0.02][..]),
        ("db.client.connection.wait_time", &[0.02, 0.02, 0.1]),
        ("db.client.connection.use_time", &[2.22, 2.2]),
    ] {
        let DebugValue::Histogram(times) = of(&seen, name, None) else {
            panic!("{name} is no histogram");
        };
        let times: Vec<f64> = times.iter().map(|time| time.0).collect();
        assert_eq!(times, expected, "{name}");
    }
    let units = seen
        .iter()
        .filter(|(_, (unit, _))| *unit == Some(Unit::Seconds));
    assert_eq!(
        units.count(),
        5,
        "three histograms and two gauges are times"
    );
}

#[test]
fn counters_grow_by_what_is_new() {
    let recorder = DebuggingRecorder::new();
    let seen = recorder.snapshotter();
    with_local_recorder(&recorder, || {
        let build = || {
            let pool = Pool::from_fn(async || Ok::<_, &str>(())).name(NAME);
            pool.build().unwrap()
        };
        let first = build();
        let second = build();
        let facade = Facade::new(Pools::of(&first));
        let acquires = || {
            facade.report();
            counter(&read(&seen))
        };

        drop(first.acquire_blocking().unwrap());
        drop(first.acquire_blocking().unwrap());
        assert_eq!(acquires(), 2);
        assert_eq!(acquires(), 0);
        drop(first.acquire_blocking().unwrap());
        assert_eq!(acquires(), 1);

        // Another pool of that name begins at zero, and takes nothing back.
        let facade = Facade::new(Pools::of(&second));
        drop(second.acquire_blocking().unwrap());
        facade.report();
        assert_eq!(counter(&read(&seen)), 1);
    });
}

fn counter(seen: &Seen) -> u64 {
    match of(seen, "cenote.acquires", None) {
        DebugValue::Counter(count) => *count,
        other => panic!("{other:?} is no counter"),
    }
}
