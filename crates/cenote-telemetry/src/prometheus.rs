//! Prometheus: the text that a scrape reads.

use std::fmt::{self, Write};
use std::sync::Arc;

use crate::buckets::Buckets;
use crate::watch::Pools;
use crate::watch::Watch;
use crate::watch::figures::{BOUNDS, Figure, Kind, Read, Snapshot, Time};
use crate::watch::recorder::Recorder;
use crate::watch::table::figures;

/// Renders pools as Prometheus text, without a server. With the feature `axum`,
/// [`routes`](Prometheus::routes) serves it.
///
/// Times are recorded in histograms from the moment at which the exporter sees a pool: when it is
/// made, and at each [`render`](Prometheus::render) and [`look`](Prometheus::look). All other
/// figures come from the status of the pool. Clones share their recorders. They are detached when
/// the last clone is dropped.
///
/// ```
/// use cenote::Pool;
/// use cenote_telemetry::{Pools, Prometheus};
///
/// let pool = Pool::from_fn(async || Ok::<_, &str>(())).name("orders").build()?;
/// let prometheus = Prometheus::new(Pools::of(&pool));
/// let held = pool.acquire_blocking()?;
///
/// let text = prometheus.render();
/// assert!(text.contains("cenote_resources{pool=\"orders\",state=\"used\"} 1\n"), "{text}");
/// assert!(text.contains("cenote_wait_seconds_count{pool=\"orders\"} 1\n"));
/// # drop(held);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Prometheus(Arc<Watch<Buckets>>);

impl Prometheus {
    /// The content type of the text.
    pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    /// Attaches recorders to the pools.
    pub fn new(pools: Pools) -> Self {
        Self(Arc::new(Watch::new(pools, |_, _| Buckets::default())))
    }

    /// Attaches recorders to pools that were built since. [`render`](Prometheus::render) does so
    /// too, but what happened before is not in the histograms.
    ///
    /// ```
    /// # use cenote::Pool;
    /// # use cenote_telemetry::{Pools, Prometheus};
    /// let prometheus = Prometheus::new(Pools::all());
    /// let pool = Pool::from_fn(async || Ok::<_, &str>(())).name("late").build()?;
    /// prometheus.look();
    /// drop(pool.acquire_blocking()?);
    /// assert!(prometheus.render().contains("cenote_use_seconds_count{pool=\"late\"} 1\n"));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn look(&self) {
        self.0.look();
    }

    /// Returns the text. It takes each pool's lock for a moment, and never waits for a resource.
    pub fn render(&self) -> String {
        let pools = self.0.snapshots();
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write_all(&mut text, &pools);
        text
    }
}

impl Default for Prometheus {
    fn default() -> Self {
        Self::new(Pools::all())
    }
}

type Seen = [(Snapshot, Arc<Recorder<Buckets>>)];

fn write_all(text: &mut String, pools: &Seen) -> fmt::Result {
    let has_fleets = pools.iter().any(|(pool, _)| pool.fleet.is_some());
    let all = figures().filter(|figure| has_fleets || !matches!(figure.read, Read::Fleet(_)));
    for figure in all {
        let kind = match figure.kind {
            Kind::Counter => "counter",
            Kind::UpDown | Kind::Gauge => "gauge",
        };
        write_head(text, figure.prometheus, figure.help, kind)?;
        for (pool, _) in pools {
            write_figure(text, figure, pool);
        }
    }
    for time in Time::ALL {
        write_head(text, time.prometheus(), time.help(), "histogram")?;
        for (pool, recorder) in pools {
            write_histogram(text, time.prometheus(), &pool.label, recorder.of(time))?;
        }
    }
    Ok(())
}

fn write_head(text: &mut String, name: &str, help: &str, kind: &str) -> fmt::Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

fn write_figure(text: &mut String, figure: &Figure, pool: &Snapshot) {
    let (name, label) = (figure.prometheus, Escaped(&pool.label));
    figure.tell(pool, |attribute, number| {
        // Writing to a string cannot fail.
        let _ = match attribute {
            None => writeln!(text, "{name}{{pool=\"{label}\"}} {number}"),
            Some((attribute, value)) => {
                let attribute = attribute.prometheus;
                writeln!(
                    text,
                    "{name}{{pool=\"{label}\",{attribute}=\"{value}\"}} {number}"
                )
            }
        };
    });
}

fn write_histogram(text: &mut String, name: &str, label: &str, times: &Buckets) -> fmt::Result {
    let label = Escaped(label);
    let counts = times.cumulative();
    for (bound, count) in BOUNDS.iter().zip(counts) {
        let bound = bound.as_secs_f64();
        writeln!(
            text,
            "{name}_bucket{{pool=\"{label}\",le=\"{bound}\"}} {count}"
        )?;
    }
    let count = counts[BOUNDS.len()];
    let sum = times.total().as_secs_f64();
    writeln!(
        text,
        "{name}_bucket{{pool=\"{label}\",le=\"+Inf\"}} {count}"
    )?;
    writeln!(text, "{name}_sum{{pool=\"{label}\"}} {sum}")?;
    writeln!(text, "{name}_count{{pool=\"{label}\"}} {count}")
}

/// The value of a label, as it is between quotes.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}
