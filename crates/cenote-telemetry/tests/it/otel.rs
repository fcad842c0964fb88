//! OpenTelemetry, with the SDK and its exporter in memory.

use std::collections::BTreeMap;

use cenote::Pool;
use cenote_telemetry::{Otel, Pools};
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, HistogramDataPoint, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};

use crate::story::{NAME, pool, tell};

const NINE: [&str; 9] = [
    "db.client.connection.count",
    "db.client.connection.create_time",
    "db.client.connection.idle.max",
    "db.client.connection.idle.min",
    "db.client.connection.max",
    "db.client.connection.pending_requests",
    "db.client.connection.timeouts",
    "db.client.connection.use_time",
    "db.client.connection.wait_time",
];

struct Sdk {
    provider: SdkMeterProvider,
    exporter: InMemoryMetricExporter,
}

impl Sdk {
    fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let reader = PeriodicReader::builder(exporter.clone()).build();
        Self {
            provider: SdkMeterProvider::builder().with_reader(reader).build(),
            exporter,
        }
    }

    fn register(&self, pools: Pools) -> Otel {
        Otel::register(&self.provider.meter("cenote"), pools)
    }

    /// Collects once, and returns what was sent, by name.
    fn collect(&self) -> BTreeMap<String, Sent> {
        self.exporter.reset();
        self.provider.force_flush().unwrap();
        let sent = self.exporter.get_finished_metrics().unwrap();
        assert_eq!(sent.len(), 1, "one collection");
        let metrics = sent[0].scope_metrics().flat_map(|scope| scope.metrics());
        metrics
            .map(|metric| {
                assert!(!metric.description().is_empty());
                let sent = Sent::new(metric.unit(), metric.data());
                (metric.name().to_owned(), sent)
            })
            .collect()
    }
}

/// One metric: its unit, its instrument, and its points by their attributes.
#[derive(Debug, PartialEq)]
struct Sent {
    unit: String,
    instrument: &'static str,
    points: BTreeMap<String, f64>,
    times: Vec<HistogramTotals>,
}

#[derive(Debug, PartialEq)]
struct HistogramTotals {
    attributes: String,
    count: u64,
    sum: f64,
    /// How many are in the bucket that ends with each of these bounds, if any.
    filled: Vec<(f64, u64)>,
}

impl Sent {
    fn new(unit: &str, data: &AggregatedMetrics) -> Self {
        let mut sent = Self {
            unit: unit.to_owned(),
            instrument: "",
            points: BTreeMap::new(),
            times: Vec::new(),
        };
        match data {
            AggregatedMetrics::F64(data) => sent.fill(data, |value| value),
            AggregatedMetrics::U64(data) => sent.fill(data, |value| value as f64),
            AggregatedMetrics::I64(data) => sent.fill(data, |value| value as f64),
        }
        sent
    }

    fn fill<T: Copy>(&mut self, data: &MetricData<T>, real: fn(T) -> f64) {
        match data {
            MetricData::Gauge(gauge) => {
                self.instrument = "gauge";
                let points = gauge.data_points();
                self.points = points
                    .map(|it| (text(it.attributes()), real(it.value())))
                    .collect();
            }
            MetricData::Sum(sum) => {
                self.instrument = if sum.is_monotonic() {
                    "counter"
                } else {
                    "updowncounter"
                };
                let points = sum.data_points();
                self.points = points
                    .map(|it| (text(it.attributes()), real(it.value())))
                    .collect();
            }
            MetricData::Histogram(histogram) => {
                self.instrument = "histogram";
                self.times = histogram.data_points().map(|it| totals(it, real)).collect();
            }
            MetricData::ExponentialHistogram(_) => panic!("none of ours"),
        }
    }
}

fn totals<T: Copy>(point: &HistogramDataPoint<T>, real: fn(T) -> f64) -> HistogramTotals {
    let buckets = point.bounds().zip(point.bucket_counts());
    HistogramTotals {
        attributes: text(point.attributes()),
        count: point.count(),
        sum: real(point.sum()),
        filled: buckets.filter(|(_, count)| *count > 0).collect(),
    }
}

fn text<'a>(attributes: impl Iterator<Item = &'a opentelemetry::KeyValue>) -> String {
    let mut all: Vec<_> = attributes
        .map(|it| format!("{}={}", it.key, it.value))
        .collect();
    all.sort();
    all.join(" ")
}

fn expected(unit: &str, instrument: &'static str, points: &[(&str, f64)]) -> Sent {
    // Attributes are sorted, and the name of the pool comes before the state.
    let points = points.iter().map(|(attribute, value)| {
        let attributes = format!("db.client.connection.pool.name={NAME} {attribute}");
        (attributes.trim_end().to_owned(), *value)
    });
    Sent {
        unit: unit.to_owned(),
        instrument,
        points: points.collect(),
        times: Vec::new(),
    }
}

fn times(sum: f64, filled: &[(f64, u64)]) -> Sent {
    Sent {
        unit: "s".to_owned(),
        instrument: "histogram",
        points: BTreeMap::new(),
        times: vec![HistogramTotals {
            attributes: format!("db.client.connection.pool.name={NAME}"),
            count: filled.iter().map(|(_, count)| count).sum(),
            sum,
            filled: filled.to_vec(),
        }],
    }
}

#[tokio::test(start_paused = true)]
async fn the_nine_metrics_of_the_conventions_are_exact() {
    let sdk = Sdk::new();
    let pool = pool();
    drop(sdk.register(Pools::of(&pool)));

    let _story = tell(pool).await;
    let sent = sdk.collect();

    let names: Vec<_> = sent.keys().filter(|name| name.starts_with("db.")).collect();
    assert_eq!(names, NINE);
    let updown = |unit, points: &[(&str, f64)]| expected(unit, "updowncounter", points);
    for (name, expected) in [
        (
            "db.client.connection.count",
            updown(
                "{connection}",
                &[
                    ("db.client.connection.state=idle", 0.0),
                    ("db.client.connection.state=used", 1.0),
                ],
            ),
        ),
        (
            "db.client.connection.idle.max",
            updown("{connection}", &[("", 1.0)]),
        ),
        (
            "db.client.connection.idle.min",
            updown("{connection}", &[("", 0.0)]),
        ),
        (
            "db.client.connection.max",
            updown("{connection}", &[("", 1.0)]),
        ),
        (
            "db.client.connection.pending_requests",
            updown("{request}", &[("", 1.0)]),
        ),
        (
            "db.client.connection.timeouts",
            expected("{timeout}", "counter", &[("", 1.0)]),
        ),
        (
            "db.client.connection.create_time",
            times(0.04, &[(0.05, 2)]),
        ),
        (
            "db.client.connection.wait_time",
            times(0.14, &[(0.05, 2), (0.1, 1)]),
        ),
        ("db.client.connection.use_time", times(4.42, &[(5.0, 2)])),
    ] {
        assert_eq!(sent[name], expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn our_own_metrics_fill_the_gaps() {
    let sdk = Sdk::new();
    let pool = pool();
    sdk.register(Pools::of(&pool));

    let _story = tell(pool).await;
    let sent = sdk.collect();

    for (name, unit, instrument, value) in [
        ("cenote.opening", "{resource}", "updowncounter", 0.0),
        ("cenote.leaks", "{lease}", "counter", 2.0),
        ("cenote.held_time", "s", "counter", 4.42),
        ("cenote.acquires", "{acquire}", "counter", 3.0),
    ] {
        assert_eq!(
            sent[name],
            expected(unit, instrument, &[("", value)]),
            "{name}"
        );
    }
    let of = |name: &str, attribute: &str| {
        let points = &sent[name].points;
        let point = points
            .iter()
            .find(|(attributes, _)| attributes.ends_with(attribute));
        *point.unwrap().1
    };
    assert_eq!(of("cenote.closes", "reason=discarded"), 1.0);
    assert_eq!(of("cenote.closes", "reason=lifetime"), 0.0);
    assert_eq!(of("cenote.refusals", "reason=rejected"), 1.0);
    assert_eq!(of("cenote.health", "verdict=busy"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn min_idle_is_exported() {
    let sdk = Sdk::new();
    let pool = Pool::from_fn(async || Ok::<_, &str>(())).name(NAME);
    let pool = pool.min_idle(3).max_size(7).build().unwrap();
    sdk.register(Pools::of(&pool));

    let sent = sdk.collect();

    let max = expected("{connection}", "updowncounter", &[("", 7.0)]);
    let min = expected("{connection}", "updowncounter", &[("", 3.0)]);
    assert_eq!(sent["db.client.connection.idle.min"], min);
    assert_eq!(sent["db.client.connection.idle.max"], max);
    assert_eq!(sent["db.client.connection.max"], max);
}

#[tokio::test(start_paused = true)]
async fn each_collection_sees_the_present_and_a_gone_pool_is_not_shown() {
    let sdk = Sdk::new();
    let pool = pool();
    let otel = sdk.register(Pools::of(&pool));
    let used = |sent: &BTreeMap<String, Sent>| {
        let points = &sent["db.client.connection.count"].points;
        *points.iter().find(|(it, _)| it.contains("used")).unwrap().1
    };

    assert_eq!(used(&sdk.collect()), 0.0);
    let held = pool.acquire().await.unwrap();
    assert_eq!(used(&sdk.collect()), 1.0);
    drop(held);
    assert_eq!(used(&sdk.collect()), 0.0);

    drop(pool);
    otel.look();
    let sent = sdk.collect();
    assert!(!sent.contains_key("db.client.connection.count"), "{sent:?}");
}

/// On the real clock, because the SDK collects in a thread of its own, which sees no paused one.
#[tokio::test]
async fn the_oldest_wait_is_as_old_as_in_the_status() {
    let sdk = Sdk::new();
    let pool = pool();
    pool.resize(1).unwrap();
    sdk.register(Pools::of(&pool));
    let _held = pool.acquire().await.unwrap();
    let waiter = tokio::spawn({
        let pool = pool.clone();
        async move { pool.acquire().await.map(drop) }
    });
    let oldest = || pool.status().oldest_wait.unwrap_or_default().as_secs_f64();
    while oldest() < 0.01 {
        tokio::task::yield_now().await;
    }

    let before = oldest();
    let sent = &sdk.collect()["cenote.oldest_wait"];
    let after = oldest();

    assert_eq!((sent.unit.as_str(), sent.instrument), ("s", "gauge"));
    let found = sent.points.values().next().unwrap();
    assert!(
        (before..=after).contains(found),
        "{before} <= {found} <= {after}"
    );
    waiter.abort();
}
