//! The figures of a fleet, in every exporter.

use cenote::{Closures, Pool};
use cenote_fleet::{Fleet, Memory};
use cenote_telemetry::{Facade, Otel, Pools, Prometheus};
use metrics::with_local_recorder;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};

/// The numbers of a member that is alone, with a floor of three.
const FIGURES: [(&str, u32); 8] = [
    ("capacity", 10),
    ("granted", 3),
    ("share", 3),
    ("wanted", 1),
    ("members", 1),
    ("reached", 1),
    ("failures", 0),
    ("lapses", 0),
];

/// A pool in a fleet, with one lease out that the fleet knows of.
async fn joined(name: &str) -> (Pool<Closures<()>>, Fleet) {
    let pool = Pool::from_fn(async || Ok::<_, &str>(())).name(name);
    let pool = pool.build().unwrap();
    let joining = Fleet::on(Memory::new()).capacity(10).floor(3);
    let mut fleet = joining.join(&pool).await.unwrap();
    let lease = pool.acquire().await.unwrap();
    while fleet.status().mine().is_none_or(|mine| mine.wants != 1) {
        fleet.changed().await.unwrap();
    }
    // The peak of the last seconds counts.
    drop(lease);
    (pool, fleet)
}

#[tokio::test(start_paused = true)]
async fn prometheus_has_the_figures_of_a_fleet() {
    let (pool, fleet) = joined("prometheus").await;
    let beside = Pool::from_fn(async || Ok::<_, &str>(())).build().unwrap();
    let prometheus = Prometheus::new(Pools::of(&pool).and(&beside).fleet(&fleet));

    let text = prometheus.render();

    for (figure, number) in FIGURES {
        let is_total = matches!(figure, "failures" | "lapses");
        let total = if is_total { "_total" } else { "" };
        let line = format!("cenote_fleet_{figure}{total}{{pool=\"prometheus\"}} {number}\n");
        assert!(text.contains(&line), "no {line} in {text}");
    }
    fleet.leave().await;
    let text = prometheus.render();
    assert!(!text.contains("cenote_fleet"), "it has left: {text}");
}

#[tokio::test(start_paused = true)]
async fn the_facade_has_the_figures_of_a_fleet() {
    let (pool, fleet) = joined("facade").await;
    let recorder = DebuggingRecorder::new();

    with_local_recorder(&recorder, || {
        Facade::new(Pools::of(&pool).fleet(&fleet)).report();
    });

    let seen = recorder.snapshotter().snapshot().into_vec();
    for (figure, number) in FIGURES {
        let name = format!("cenote.fleet.{figure}");
        let mut found = seen.iter().filter(|(key, ..)| key.key().name() == name);
        let value = found.next().map(|(.., value)| value);
        let expected = match figure {
            "failures" | "lapses" => DebugValue::Counter(number.into()),
            _ => DebugValue::Gauge(f64::from(number).into()),
        };
        assert_eq!(value, Some(&expected), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn opentelemetry_has_the_figures_of_a_fleet() {
    let (pool, fleet) = joined("otel").await;
    let exporter = InMemoryMetricExporter::default();
    let reader = PeriodicReader::builder(exporter.clone()).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();

    Otel::register(&provider.meter("cenote"), Pools::of(&pool).fleet(&fleet));
    provider.force_flush().unwrap();

    let sent = exporter.get_finished_metrics().unwrap();
    let metrics = sent[0].scope_metrics().flat_map(|scope| scope.metrics());
    let metrics: Vec<_> = metrics.map(|metric| (metric.name(), metric)).collect();
    for (figure, number) in FIGURES {
        let name = format!("cenote.fleet.{figure}");
        let (_, metric) = metrics.iter().find(|(one, _)| *one == name).unwrap();
        let data = format!("{:?}", metric.data());
        assert!(data.contains(&format!("value: {number},")), "{data}");
    }
}
