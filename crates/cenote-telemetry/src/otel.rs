//! OpenTelemetry: the nine metrics of its conventions for connection pools, and ours for the gaps.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Histogram, Meter};

use crate::shelf::Shelf;
use crate::watch::figures::{BOUNDS, Figure, Kind, Number, POOL, Read, Snapshot, Time};
use crate::watch::recorder::Distribution;
use crate::watch::table::figures;
use crate::watch::{Pools, Watch};

/// Exports pools through a meter of OpenTelemetry. The program brings the SDK.
///
/// The metrics are the nine of the [conventions] for connection pools (`db.client.connection.*`),
/// and metrics of ours for the gaps (`cenote.*`). Counts are read when the SDK collects: all of
/// them from one status of each pool. Times are recorded from the moment at which the exporter sees
/// a pool: at [`register`](Otel::register), at each collection, and at [`look`](Otel::look).
///
/// The meter keeps the exporter alive. So this handle may be dropped.
///
/// [conventions]: https://opentelemetry.io/docs/specs/semconv/database/database-metrics/
///
/// ```
/// use cenote::Pool;
/// use cenote_telemetry::{Otel, Pools};
/// use opentelemetry::metrics::MeterProvider;
/// use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
///
/// let exporter = InMemoryMetricExporter::default(); // stands for one that sends
/// let reader = PeriodicReader::builder(exporter.clone()).build();
/// let provider = SdkMeterProvider::builder().with_reader(reader).build();
///
/// let pool = Pool::from_fn(async || Ok::<_, &str>(())).name("orders").build()?;
/// Otel::register(&provider.meter("cenote"), Pools::all());
/// drop(pool.acquire_blocking()?);
///
/// provider.force_flush()?;
/// let sent = exporter.get_finished_metrics()?;
/// let mut metrics = sent[0].scope_metrics().flat_map(|scope| scope.metrics());
/// assert!(metrics.any(|metric| metric.name() == "db.client.connection.use_time"));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Otel(Arc<Exported>);

struct Exported {
    watch: Watch<Times>,
    shelf: Shelf<Vec<Snapshot>>,
}

impl Otel {
    /// Makes the instruments of this meter and attaches recorders to the pools.
    pub fn register(meter: &Meter, pools: Pools) -> Self {
        let histograms = Time::ALL.map(|time| histogram(meter, time));
        let make = move |time: Time, label: &Arc<str>| Times {
            histogram: histograms[time as usize].clone(),
            pool: [of_pool(label)],
        };
        let exported = Arc::new(Exported {
            watch: Watch::new(pools, make),
            shelf: Shelf::new(),
        });
        for (number, figure) in figures().enumerate() {
            observe(meter, figure, number, &exported);
        }
        Self(exported)
    }

    /// Attaches recorders to pools that were built since. Each collection does so too, but what
    /// happened before is not in the histograms.
    pub fn look(&self) {
        self.0.watch.look();
    }
}

impl fmt::Debug for Otel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Otel").field(&self.0.watch).finish()
    }
}

impl Exported {
    fn snapshots(&self, callback: usize) -> Arc<Vec<Snapshot>> {
        let take = || {
            let all = self.watch.snapshots().into_iter();
            all.map(|(snapshot, _)| snapshot).collect()
        };
        self.shelf.get(callback, now(), take)
    }
}

/// The times of one pool.
#[derive(Debug)]
struct Times {
    histogram: Histogram<f64>,
    pool: [KeyValue; 1],
}

impl Distribution for Times {
    fn record(&self, time: Duration) {
        self.histogram.record(time.as_secs_f64(), &self.pool);
    }
}

fn histogram(meter: &Meter, time: Time) -> Histogram<f64> {
    let bounds = BOUNDS.iter().map(Duration::as_secs_f64).collect();
    let histogram = meter.f64_histogram(time.name()).with_unit("s");
    let histogram = histogram.with_description(time.help());
    histogram.with_boundaries(bounds).build()
}

/// Makes the instrument of a figure. Its callback keeps the exporter alive.
fn observe(meter: &Meter, figure: &'static Figure, number: usize, exported: &Arc<Exported>) {
    let exported = Arc::clone(exported);
    macro_rules! build {
        ($instrument:ident: $type:ty, $convert:expr) => {{
            let callback = move |instrument: &dyn AsyncInstrument<$type>| {
                for pool in &*exported.snapshots(number) {
                    observe_pool(instrument, figure, pool, $convert);
                }
            };
            let instrument = meter.$instrument(figure.name).with_unit(figure.unit);
            let instrument = instrument.with_description(figure.help);
            instrument.with_callback(callback).build();
        }};
    }
    let signed = |number: Number| i64::try_from(number.whole()).unwrap_or(i64::MAX);
    match (figure.kind, &figure.read) {
        (Kind::Counter, Read::Time(_)) => build!(f64_observable_counter: f64, Number::real),
        (Kind::Counter, _) => build!(u64_observable_counter: u64, Number::whole),
        (Kind::Gauge, Read::Time(_)) => build!(f64_observable_gauge: f64, Number::real),
        (Kind::Gauge, _) => build!(u64_observable_gauge: u64, Number::whole),
        (Kind::UpDown, _) => build!(i64_observable_up_down_counter: i64, signed),
    }
}

fn observe_pool<T>(
    instrument: &dyn AsyncInstrument<T>,
    figure: &Figure,
    pool: &Snapshot,
    convert: impl Fn(Number) -> T,
) {
    let of_pool = of_pool(&pool.label);
    figure.tell(pool, |attribute, number| {
        let number = convert(number);
        match attribute {
            None => instrument.observe(number, std::slice::from_ref(&of_pool)),
            Some((attribute, value)) => {
                let attribute = KeyValue::new(attribute.name, value);
                instrument.observe(number, &[of_pool.clone(), attribute]);
            }
        }
    });
}

fn of_pool(label: &Arc<str>) -> KeyValue {
    KeyValue::new(POOL, Arc::clone(label))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the pool; this tells collections apart"
)]
fn now() -> Instant {
    Instant::now()
}
