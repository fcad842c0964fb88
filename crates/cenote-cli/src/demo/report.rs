//! The summary and the verdict of the demo.

use std::fmt;
use std::time::Duration;

use cenote::{Holder, Leftover, Status};
use serde_json::{Value, json};

use super::load::Tally;
use super::shop::Books;
use super::stage::SceneResult;
use crate::failure::Failure;
use crate::out::{short_time, thousands};

#[cfg(test)]
mod tests;

/// Everything that the demo has seen.
#[derive(Debug)]
pub(super) struct Summary {
    /// Where the shop was, if it was on the server of a user.
    pub(super) shop: Option<String>,
    pub(super) tasks: u32,
    pub(super) took: Duration,
    pub(super) tally: Tally,
    pub(super) books: Books,
    pub(super) results: Vec<SceneResult>,
    /// The pool before the drain.
    pub(super) before_close: Status,
    /// The pool when everything should be closed.
    pub(super) after_close: Status,
    /// Leases and connections that were not closed in time.
    pub(super) leftover: Leftover,
}

impl Summary {
    /// Returns an error if a check of the summary fails.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let wrong: Vec<String> = [self.verify(), self.closing(), self.scenes()]
            .into_iter()
            .filter_map(Result::err)
            .collect();
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(wrong.join("; ").into())
        }
    }

    /// Checks that the database has every successful write once, and nothing else.
    fn verify(&self) -> Result<String, String> {
        let (
            writes,
            Books {
                entries,
                moved,
                balance,
            },
        ) = (self.tally.writes, self.books);
        if u64::try_from(entries) != Ok(writes) {
            return Err(format!("{entries} rows for {writes} successful writes"));
        }
        if moved != balance {
            return Err(format!(
                "the entries sum to {moved}, the accounts to {balance}"
            ));
        }
        Ok(format!(
            "ok: {} rows for as many successful writes, and the sums agree",
            thousands(writes)
        ))
    }

    /// Checks that every scene has shown what it promises.
    fn scenes(&self) -> Result<String, String> {
        match self.results.iter().find(|result| !result.ok) {
            Some(SceneResult { scene, shown, .. }) => Err(format!("{scene}: {shown}")),
            None => Ok(format!(
                "ok: {} have shown what they promise",
                self.results.len()
            )),
        }
    }

    /// Returns the summary for machines.
    pub(super) fn to_json(&self) -> Value {
        let wait = |quantile| self.tally.waits.value_at_quantile(quantile) as f64 / 1e3;
        json!({
            "shop": self.shop,
            "seconds": self.took.as_secs_f64(),
            "tasks": self.tasks,
            "reads": self.tally.reads,
            "writes": self.tally.writes,
            "refused": self.tally.refused,
            "wait_ms": { "p50": wait(0.5), "p99": wait(0.99), "max": wait(1.0) },
            "scenes": self.results,
            "ok": self.verdict().is_ok(),
        })
    }

    /// Checks that every lease was returned and every connection was closed.
    fn closing(&self) -> Result<String, String> {
        let Leftover {
            leases, unfinished, ..
        } = &self.leftover;
        if !leases.is_empty() {
            let holders: Vec<String> = leases.iter().map(Holder::to_string).collect();
            return Err(format!("still leased: {}", holders.join(", ")));
        }
        if *unfinished > 0 {
            return Err(format!("{unfinished} connections are still open"));
        }
        Ok("ok: every lease was returned and every connection closed".to_owned())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tally,
            before_close: pool,
            ..
        } = self;
        let seconds = self.took.as_secs_f64();

        if let Some(shop) = &self.shop {
            writeln!(f, "\nthe shop was {shop}")?;
        }
        section(f, "scenes")?;
        for SceneResult { scene, shown, .. } in &self.results {
            writeln!(f, "  {scene:<10}{shown}")?;
        }

        section(f, "operations")?;
        row(f, "tasks", self.tasks)?;
        row(f, "seconds", format!("{seconds:.2}"))?;
        count(f, "reads", tally.reads)?;
        count(f, "writes", tally.writes)?;
        count(f, "total", tally.operations())?;
        count(
            f,
            "per second",
            (tally.operations() as f64 / seconds) as u64,
        )?;
        count(f, "transactions abandoned", tally.abandoned)?;
        count(f, "waits given up", tally.given_up)?;
        count(f, "acquires refused", tally.refused)?;
        count(f, "writes refused as busy", tally.busy)?;

        section(f, "acquire wait")?;
        for (name, quantile) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)] {
            let wait = tally.waits.value_at_quantile(quantile);
            row(f, name, short_time(Duration::from_micros(wait)))?;
        }
        let longest = Duration::from_micros(tally.waits.max());
        row(f, "max", short_time(longest))?;

        section(f, "pool, before closing")?;
        count(f, "max_size", pool.max_size as u64)?;
        count(f, "idle", pool.idle as u64)?;
        count(f, "in_use", pool.in_use as u64)?;
        count(f, "waiting", pool.waiting as u64)?;
        count(f, "opened", pool.opened)?;
        count(f, "open_failed", pool.open_failed)?;
        count(f, "acquired", pool.acquired)?;
        count(f, "released", pool.released)?;
        count(f, "discarded", pool.discarded)?;
        count(f, "waited", pool.waited)?;
        count(f, "timed_out", pool.timed_out)?;
        count(f, "cancelled", pool.cancelled)?;
        count(f, "leaked", pool.leaked)?;

        section(f, "closes by reason")?;
        let closed = &self.after_close.closes;
        for (reason, closes) in closed.iter().filter(|(_, closes)| *closes > 0) {
            count(f, reason.name(), closes)?;
        }
        count(f, "total", closed.total())?;

        writeln!(f)?;
        for (name, verdict) in [
            ("verify", self.verify()),
            ("close", self.closing()),
            ("scenes", self.scenes()),
        ] {
            let text = verdict.unwrap_or_else(|wrong| format!("WRONG: {wrong}"));
            writeln!(f, "{name:<8}{text}")?;
        }
        Ok(())
    }
}

fn section(f: &mut fmt::Formatter<'_>, title: &str) -> fmt::Result {
    writeln!(f, "\n{title}")
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, value: impl fmt::Display) -> fmt::Result {
    // Padding only works on a string, because only a string knows its width.
    let value = value.to_string();
    writeln!(f, "  {name:<24}{value:>14}")
}

fn count(f: &mut fmt::Formatter<'_>, name: &str, value: u64) -> fmt::Result {
    row(f, name, thousands(value))
}
