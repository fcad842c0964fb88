//! `cenote replay`: how long the callers of a recorded trace would have waited with other sizes.
//!
//! The real pool is played on a clock that jumps from event to event. Smaller sizes are firm: the
//! leases take as long as they were recorded. Larger ones are a band, because a server that serves
//! more at once may be slower: at best leases take nearly as long as before, at worst they get
//! longer by the universal scalability law, fitted to the same trace.

mod figures;
mod idle;
mod load;
mod picture;
mod report;
mod sizes;
mod stretch;
mod world;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use cenote_telemetry::trace::Recorded;

use crate::args::ReplayArgs;
use crate::bench::{report_format, write_report};
use crate::failure::{Failure, Verdict, usage};
use crate::out;

use figures::Figures;
use load::Load;
use report::Report;
use stretch::{Case, Stretch};

pub(crate) async fn run(args: &ReplayArgs) -> Result<Verdict, Failure> {
    let format = args.report.as_deref().map(report_format).transpose()?;
    let recorded = read(&args.trace)?;
    let sizes = sizes::parse(args.max_size.as_deref(), recorded.config.max_size)?;
    // The replay does not await anything, and an interrupt must still end the program.
    let report = tokio::task::spawn_blocking(move || report(&recorded, &sizes)).await??;

    if let (Some(file), Some(format)) = (&args.report, format) {
        write_report(file, &picture::draw(&report, format))?;
    }
    if args.json {
        out::print_json(&report)?;
    } else {
        out::print(&report.to_text())?;
    }
    Ok(Verdict::Fine)
}

fn read(file: &Path) -> Result<Recorded, Failure> {
    let shown = file.display();
    let opened = File::open(file).map_err(|error| {
        format!("cannot read `{shown}`: {error}; name a trace of `cenote record`")
    })?;
    let recorded = Recorded::read(BufReader::new(opened));
    let recorded = recorded.map_err(|error| format!("`{shown}`: {error}"))?;
    if recorded.visits.is_empty() {
        return Err(usage(format!(
            "`{shown}` has no acquires: record while the service works"
        )));
    }
    if recorded.config.max_size == 0 {
        return Err(format!("`{shown}` names a pool of the size 0: record it again").into());
    }
    Ok(recorded)
}

fn report(recorded: &Recorded, sizes: &[usize]) -> Result<Report, Failure> {
    let load = Arc::new(Load::new(recorded));
    let stretch = Stretch::of(&load);
    // Sizes above the smallest that the pool had were not seen all the time.
    let resizes = recorded.resizes.iter().copied();
    let firm = resizes.fold(recorded.config.max_size, usize::min);
    let mut jobs = vec![(recorded.config.max_size, Case::Firm)];
    for &size in sizes {
        match size > firm {
            false => jobs.push((size, Case::Firm)),
            true => jobs.extend([(size, Case::Best), (size, Case::Worst(stretch))]),
        }
    }
    let mut played = play_all(&load, &jobs)?.into_iter();
    let own = played.next().ok_or("bug: the first job has no result")?;
    let mut rows = Vec::new();
    for &size in sizes {
        let best = played.next().ok_or("bug: a job has no result")?;
        let worst = if size > firm { played.next() } else { None };
        rows.push((size, best, worst));
    }
    Ok(Report::new(recorded, &load, firm, stretch, &own, &rows))
}

/// Plays the jobs on all cores. Returns the results in the order of the jobs.
fn play_all(load: &Arc<Load>, jobs: &[(usize, Case)]) -> Result<Vec<Figures>, Failure> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let work = || {
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(size, case)) = jobs.get(nth) else {
                return;
            };
            let played = world::play(Arc::clone(load), size, case);
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            results.push((nth, played));
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cores.min(jobs.len()) {
            scope.spawn(work);
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|&(nth, _)| nth);
    results.into_iter().map(|(_, played)| played).collect()
}
