//! What the sweep means: the size to set, and how sure that is.

use serde::Serialize;

use super::client;
use super::sweep::{Point, Sweep};
use super::usl::Usl;
use crate::out::{Colour, Table, paint, short_time, thousands};
use crate::target::Places;

/// Halves of a measurement that differ by less are in agreement.
const CALM: f64 = 0.05;
const RESTLESS: f64 = 0.15;

/// A law that explains more than this part fits well.
const FITS: f64 = 0.95;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Sure {
    High,
    Medium,
    Low,
}

#[derive(Debug, Serialize)]
pub(super) struct Advice {
    url: String,
    /// The size to set.
    pub(super) max_size: usize,
    /// The least size that reaches nearly the best throughput.
    knee: usize,
    /// How many connections the server has for each instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    pub(super) sure: Sure,
    because: Vec<String>,
    /// What is wrong if this program, and not the server, was the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client_limit: Option<String>,
    usl: Option<Usl>,
    points: Vec<Point>,
    #[serde(skip)]
    limit_text: Option<String>,
}

impl Advice {
    pub(super) fn new(url: String, sweep: &Sweep, places: Option<Places>, instances: u32) -> Self {
        let limit = places.map(|places| places.for_each(instances));
        let fits = limit.map_or(sweep.knee, |limit| {
            sweep.knee.min(usize::try_from(limit).unwrap_or(usize::MAX))
        });
        let usl = Usl::fit(&sweep.points);
        let client_limit = client::remark(sweep.client_busy());
        let (sure, because) = sureness(sweep, usl.as_ref(), client_limit.is_some());
        let limit_text = places.map(|places| {
            let Places {
                all,
                reserved,
                others,
            } = places;
            format!(
                "{all} places - {reserved} reserved - {others} of others = {}, for each of \
                 {instances} instances {}",
                places.left(),
                places.for_each(instances)
            )
        });
        Self {
            url,
            max_size: fits.max(1),
            knee: sweep.knee,
            limit,
            sure,
            because,
            client_limit,
            usl,
            points: sweep.points.clone(),
            limit_text,
        }
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = format!("{}\n\n{}", self.url, self.chart());
        if let Some(law) = &self.usl {
            let peak = law
                .peak()
                .map_or("none".to_owned(), |peak| format!("at {peak:.0}"));
            text += &format!(
                "\n  USL: λ {:.0} per second, σ {:.4}, κ {:.6}, R² {:.3}, peak {peak}\n",
                law.lambda, law.sigma, law.kappa, law.r_squared
            );
        }
        if let Some(limit) = &self.limit_text {
            text += &format!("  the server: {limit}\n");
        }
        if self.max_size < self.knee {
            text += &format!(
                "  the knee is at {}, but the server has only {} for each instance: raise its \
                 limit, or put a proxy in front\n",
                self.knee, self.max_size
            );
        }
        if let Some(remark) = &self.client_limit {
            text += &format!("  {}\n", paint().say(Colour::Yellow, remark));
        }
        let sure = match self.sure {
            Sure::High => "high",
            Sure::Medium => "medium",
            Sure::Low => "low",
        };
        text += &format!("  confidence: {sure} ({})\n", self.because.join("; "));
        let size = format!("max_size = {}", self.max_size);
        text + &format!(
            "\nto paste into the settings of the pool:\n\n{}\n",
            paint().say(Colour::Bold, &size)
        )
    }

    fn chart(&self) -> String {
        let best = self
            .points
            .iter()
            .map(|it| it.per_second)
            .fold(0.0, f64::max);
        let mut table = Table::new(&[
            "",
            ">size",
            ">per second",
            ">in use",
            ">p99",
            ">client",
            ">law",
            "",
        ]);
        let time = |millis: f64| short_time(std::time::Duration::from_secs_f64(millis / 1e3));
        for point in &self.points {
            let bar = "█".repeat((point.per_second / best.max(1e-9) * 40.0).round() as usize);
            let law = self.usl.map_or(String::new(), |law| {
                thousands(law.predict(point.size) as u64)
            });
            let mark = if point.size == self.knee { "knee" } else { "" };
            table.row([
                mark.to_owned(),
                point.size.to_string(),
                thousands(point.per_second as u64),
                time(point.use_ms),
                time(point.p99_ms),
                format!("{:.0} %", point.client_busy * 100.0),
                law,
                bar,
            ]);
        }
        table.show()
    }
}

fn sureness(sweep: &Sweep, usl: Option<&Usl>, client_limits: bool) -> (Sure, Vec<String>) {
    let noise: f64 = sweep.points.iter().map(|it| it.noise).sum();
    let noise = noise / sweep.points.len().max(1) as f64;
    let mut because = vec![format!(
        "repeated measurements differ by {:.0} %",
        noise * 100.0
    )];
    let mut sure = match noise {
        ..CALM => Sure::High,
        CALM..RESTLESS => Sure::Medium,
        _ => Sure::Low,
    };
    match usl {
        Some(law) if law.r_squared >= FITS => because.push("the law fits".to_owned()),
        Some(law) => {
            because.push(format!(
                "the law explains {:.0} % only",
                law.r_squared.max(0.0) * 100.0
            ));
            sure = if sure == Sure::High {
                Sure::Medium
            } else {
                sure
            };
        }
        None => because.push("too few sizes for the law".to_owned()),
    }
    if sweep.ends_early {
        because.push("throughput still grew at the largest size: raise `--max-size`".to_owned());
        sure = Sure::Low;
    }
    if client_limits {
        because.push("the server was not at its limit".to_owned());
        sure = Sure::Low;
    }
    (sure, because)
}

#[cfg(test)]
mod tests;
