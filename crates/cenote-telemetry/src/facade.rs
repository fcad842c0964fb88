//! The `metrics` facade: the same metrics as for OpenTelemetry, for the recorder of the program.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use metrics::{Histogram, Label, SharedString, Unit, counter, gauge, histogram};
use metrics::{describe_counter, describe_gauge, describe_histogram};

use crate::watch::figures::{Figure, Kind, Number, POOL, Read, Snapshot, Time};
use crate::watch::recorder::{Distribution, Recorder};
use crate::watch::table::figures;
use crate::watch::{Pools, Watch};

/// Exports pools through the facade of the crate `metrics`. The program brings the recorder, and
/// installs it first.
///
/// Names and labels are those of OpenTelemetry. Times are recorded when they happen, from the
/// moment at which the exporter sees a pool. The facade cannot ask for values, so all other
/// figures are sent by [`report`](Facade::report). Call it every few seconds, or before the
/// recorder is rendered.
///
/// Counters of the facade are whole numbers. So `cenote.held_time`, in seconds, is a gauge.
///
/// ```
/// use cenote::Pool;
/// use cenote_telemetry::{Facade, Pools};
/// use metrics_util::debugging::DebuggingRecorder;
///
/// let recorder = DebuggingRecorder::new(); // stands for one that sends
/// let seen = recorder.snapshotter();
/// recorder.install()?;
///
/// let pool = Pool::from_fn(async || Ok::<_, &str>(())).name("orders").build()?;
/// let facade = Facade::new(Pools::all());
/// drop(pool.acquire_blocking()?);
/// facade.report();
///
/// let seen = seen.snapshot().into_vec();
/// assert!(seen.iter().any(|(key, ..)| key.key().name() == "db.client.connection.use_time"));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Facade {
    watch: Watch<Times>,
    sent: Mutex<Vec<Sent>>,
}

/// The counters of a pool as they were sent last, in the order of the figures.
type Sent = (Arc<Recorder<Times>>, Vec<u64>);

impl Facade {
    /// Describes the metrics to the recorder of the program, and attaches recorders of ours to the
    /// pools.
    pub fn new(pools: Pools) -> Self {
        for time in Time::ALL {
            describe_histogram!(time.name(), Unit::Seconds, time.help());
        }
        for figure in figures() {
            let unit = match figure.read {
                Read::Time(_) => Unit::Seconds,
                Read::Count(_) | Read::Fleet(_) | Read::By(..) => Unit::Count,
            };
            if is_counter(figure) {
                describe_counter!(figure.name, unit, figure.help);
            } else {
                describe_gauge!(figure.name, unit, figure.help);
            }
        }
        Self {
            watch: Watch::new(pools, Times::new),
            sent: Mutex::default(),
        }
    }

    /// Sends the figures of all pools: gauges as they are, and how much counters have grown since
    /// the last report. It looks for new pools too.
    pub fn report(&self) {
        let pools = self.watch.snapshots();
        let mut steps = Vec::new();
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut now = Vec::with_capacity(pools.len());
        for (pool, recorder) in pools {
            let before = sent.iter().find(|(one, _)| Arc::ptr_eq(one, &recorder));
            let before = before.map_or(&[][..], |(_, counts)| counts);
            now.push((recorder, steps_of(&pool, before, &mut steps)));
        }
        let before = std::mem::replace(&mut *sent, now);
        drop(sent);
        drop(before);
        for step in steps {
            step.take();
        }
    }
}

/// One call of the recorder, which is made without a lock.
struct Step {
    name: &'static str,
    labels: Vec<Label>,
    change: Change,
}

enum Change {
    Grow(u64),
    Set(f64),
}

impl Step {
    fn take(self) {
        match self.change {
            Change::Grow(by) => counter!(self.name, self.labels).increment(by),
            Change::Set(to) => gauge!(self.name, self.labels).set(to),
        }
    }
}

/// Adds the steps for one pool, and returns its counters.
fn steps_of(pool: &Snapshot, before: &[u64], steps: &mut Vec<Step>) -> Vec<u64> {
    let mut counts = Vec::with_capacity(before.len());
    for figure in figures() {
        figure.tell(pool, |attribute, number| {
            let mut labels = vec![of_pool(&pool.label)];
            labels.extend(attribute.map(|(attribute, value)| Label::new(attribute.name, value)));
            let change = match number {
                Number::Count(count) if is_counter(figure) => {
                    let sent = before.get(counts.len()).copied().unwrap_or(0);
                    counts.push(count);
                    Change::Grow(count.saturating_sub(sent))
                }
                number => Change::Set(number.real()),
            };
            steps.push(Step {
                name: figure.name,
                labels,
                change,
            });
        });
    }
    counts
}

fn is_counter(figure: &Figure) -> bool {
    figure.kind == Kind::Counter && !matches!(figure.read, Read::Time(_))
}

/// The times of one pool.
#[derive(Debug)]
struct Times {
    histogram: Histogram,
}

impl Times {
    fn new(time: Time, label: &Arc<str>) -> Self {
        Self {
            histogram: histogram!(time.name(), vec![of_pool(label)]),
        }
    }
}

impl Distribution for Times {
    fn record(&self, time: Duration) {
        self.histogram.record(time);
    }
}

fn of_pool(label: &Arc<str>) -> Label {
    Label::new(POOL, SharedString::from_shared(Arc::clone(label)))
}
