//! The text for Prometheus, read by a parser that is not ours.

use std::collections::HashMap;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use cenote::Pool;
use cenote_telemetry::{Pools, Prometheus};
use http_body_util::BodyExt;
use openmetrics_parser::prometheus::parse_prometheus;
use openmetrics_parser::{HistogramValue, PrometheusType, PrometheusValue};
use tower::ServiceExt;

use crate::story::{NAME, pool, tell};

struct Parsed {
    /// By name, and the values of the labels in the order of their names.
    numbers: HashMap<(String, Vec<String>), f64>,
    histograms: HashMap<(String, Vec<String>), HistogramValue>,
    types: HashMap<String, PrometheusType>,
}

impl Parsed {
    fn number(&self, name: &str, labels: &[&str]) -> f64 {
        let labels: Vec<_> = labels.iter().map(|&label| label.to_owned()).collect();
        let key = (name.to_owned(), labels);
        *self.numbers.get(&key).unwrap_or_else(|| panic!("{key:?}"))
    }

    fn histogram(&self, name: &str) -> &HistogramValue {
        &self.histograms[&(name.to_owned(), vec![NAME.to_owned()])]
    }
}

fn parse(text: &str) -> Parsed {
    let mut parsed = Parsed {
        numbers: HashMap::new(),
        histograms: HashMap::new(),
        types: HashMap::new(),
    };
    for (name, family) in parse_prometheus(text).unwrap().families {
        assert!(!family.help.is_empty(), "{name}");
        for sample in family.iter_samples() {
            let labels = sample.get_labelset().unwrap();
            let key = (name.clone(), labels.iter_values().cloned().collect());
            match &sample.value {
                PrometheusValue::Counter(counter) => {
                    parsed.numbers.insert(key, counter.value.as_f64());
                }
                PrometheusValue::Gauge(gauge) => {
                    parsed.numbers.insert(key, gauge.as_f64());
                }
                PrometheusValue::Histogram(histogram) => {
                    parsed.histograms.insert(key, histogram.clone());
                }
                other => panic!("{name}: {other:?}"),
            }
        }
        parsed.types.insert(name, family.family_type);
    }
    parsed
}

#[tokio::test(start_paused = true)]
async fn every_figure_is_exact() {
    let pool = pool();
    let prometheus = Prometheus::new(Pools::of(&pool));

    let _story = tell(pool).await;
    let parsed = parse(&prometheus.render());

    for (name, expected) in [
        ("cenote_resources_idle_max", 1.0),
        ("cenote_resources_idle_min", 0.0),
        ("cenote_resources_max", 1.0),
        ("cenote_waiters", 1.0),
        ("cenote_timeouts_total", 1.0),
        ("cenote_opening", 0.0),
        ("cenote_closing", 0.0),
        ("cenote_reserved", 0.0),
        ("cenote_oldest_wait_seconds", 0.05),
        ("cenote_acquires_total", 3.0),
        ("cenote_waits_total", 5.0),
        ("cenote_cancellations_total", 0.0),
        ("cenote_held_seconds_total", 4.42),
        ("cenote_leaks_total", 2.0),
        ("cenote_opens_total", 2.0),
        ("cenote_open_failures_total", 0.0),
        ("cenote_close_failures_total", 0.0),
    ] {
        assert_eq!(parsed.number(name, &[NAME]), expected, "{name}");
    }
    for (name, label, expected) in [
        ("cenote_resources", "idle", 0.0),
        ("cenote_resources", "used", 1.0),
        ("cenote_closes_total", "discarded", 1.0),
        ("cenote_closes_total", "idle", 0.0),
        ("cenote_refusals_total", "rejected", 1.0),
        ("cenote_refusals_total", "closed", 0.0),
        ("cenote_health", "busy", 1.0),
        ("cenote_health", "stuck", 0.0),
    ] {
        let found = parsed.number(name, &[NAME, label]);
        assert_eq!(found, expected, "{name} {label}");
    }
    assert_eq!(parsed.types["cenote_leaks_total"], PrometheusType::Counter);
    assert_eq!(parsed.types["cenote_waiters"], PrometheusType::Gauge);
}

#[tokio::test(start_paused = true)]
async fn histograms_count_each_time_once() {
    let pool = pool();
    let prometheus = Prometheus::new(Pools::of(&pool));

    let _story = tell(pool).await;
    let parsed = parse(&prometheus.render());

    // How many are within 10 ms, 50 ms, 100 ms and 5 s, with the bounds in between left out.
    for (name, sum, within) in [
        ("cenote_create_seconds", 0.04, [0.0, 2.0, 2.0, 2.0]),
        ("cenote_wait_seconds", 0.14, [0.0, 2.0, 3.0, 3.0]),
        ("cenote_use_seconds", 4.42, [0.0, 0.0, 0.0, 2.0]),
    ] {
        let histogram = parsed.histogram(name);
        let found = [0.01, 0.05, 0.1, 5.0].map(|bound| {
            let bucket = histogram.buckets.iter().find(|it| it.upper_bound == bound);
            bucket.unwrap().count.as_f64()
        });
        assert_eq!(found, within, "{name}");
        assert_eq!(histogram.sum.unwrap().as_f64(), sum, "{name}");
        assert_eq!(histogram.count, Some(within[3] as u64), "{name}");
        assert_eq!(histogram.buckets[0].upper_bound, 1e-6);
        let last = histogram.buckets.last().unwrap();
        assert_eq!(last.upper_bound, f64::INFINITY);
        assert_eq!(last.count.as_f64(), within[3]);
    }
}

#[test]
fn a_name_comes_through_whatever_is_in_it() {
    let name = "a \"quoted\"\\n name\\\nwith {lines}, ünicode=\"\\\"";
    let pool = Pool::from_fn(async || Ok::<_, &str>(())).name(name);
    let pool = pool.build().unwrap();

    let parsed = parse(&Prometheus::new(Pools::of(&pool)).render());

    assert_eq!(parsed.number("cenote_resources_max", &[name]), 10.0);
}

#[test]
fn pools_of_one_name_are_kept_apart() {
    let build = |size| {
        let pool = Pool::from_fn(async || Ok::<_, &str>(())).name("twin");
        pool.max_size(size).build().unwrap()
    };
    let (one, two) = (build(1), build(2));
    let prometheus = Prometheus::new(Pools::of(&one).and(&two));
    let max = |label| parse(&prometheus.render()).number("cenote_resources_max", &[label]);

    assert_eq!((max("twin"), max("twin#2")), (1.0, 2.0));
    drop(one);
    assert_eq!(max("twin#2"), 2.0, "it keeps its label");
    let text = prometheus.render();
    assert!(!text.contains("{pool=\"twin\""), "it is gone: {text}");
}

#[test]
fn all_means_pools_that_are_built_later_too() {
    let prometheus = Prometheus::default();
    let pool = Pool::from_fn(async || Ok::<_, &str>(())).name("built later");
    let pool = pool.build().unwrap();

    prometheus.look();
    drop(pool.acquire_blocking().unwrap());
    let parsed = parse(&prometheus.render());

    let key = ("cenote_use_seconds".to_owned(), vec!["built later".into()]);
    assert_eq!(parsed.histograms[&key].count, Some(1));
    drop(pool);
    assert!(!prometheus.render().contains("built later"));
}

#[test]
fn clones_share_their_recorders() {
    let pool = Pool::from_fn(async || Ok::<_, &str>(())).name("shared");
    let pool = pool.build().unwrap();
    let first = Prometheus::new(Pools::of(&pool));
    let second = first.clone();

    drop(first);
    drop(pool.acquire_blocking().unwrap());

    let text = second.render();
    assert!(
        text.contains("cenote_use_seconds_count{pool=\"shared\"} 1\n"),
        "{text}"
    );
}

#[tokio::test]
async fn the_route_serves_the_text() {
    let pool = pool();
    let app: Router = Router::new().merge(Prometheus::new(Pools::of(&pool)).routes());

    let request = Request::get("/metrics").body(Body::empty()).unwrap();
    let response = app.oneshot(request).await.unwrap();

    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], Prometheus::CONTENT_TYPE);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let parsed = parse(std::str::from_utf8(&body).unwrap());
    assert_eq!(parsed.number("cenote_resources_max", &[NAME]), 2.0);
}

#[tokio::test(start_paused = true)]
async fn a_stuck_pool_and_a_pool_that_is_down_say_so() {
    let verdict = |prometheus: &Prometheus, label: &str, verdict: &str| {
        parse(&prometheus.render()).number("cenote_health", &[label, verdict])
    };
    let stuck = Pool::from_fn(async || Ok::<_, &str>(())).name("stuck");
    let stuck = stuck.max_size(1).build().unwrap();
    let down = Pool::from_fn(async || Err::<(), _>("refused")).name("down");
    let down = down.build().unwrap();
    let prometheus = Prometheus::new(Pools::of(&stuck).and(&down));
    let _held = stuck.acquire().await.unwrap();
    let waiting = stuck.acquire_within(Duration::from_secs(60));

    tokio::select! {
        _ = waiting => panic!("the only one is out"),
        () = tokio::time::sleep(Duration::from_secs(6)) => {
            assert_eq!(verdict(&prometheus, "stuck", "stuck"), 1.0);
        }
    }
    assert!(down.acquire().await.is_err());
    assert_eq!(verdict(&prometheus, "down", "down"), 1.0);
    let parsed = parse(&prometheus.render());
    assert_eq!(parsed.number("cenote_open_failures_total", &["down"]), 1.0);
}
