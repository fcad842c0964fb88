//! `cenote bench`: how fast statements are through the pool, and how long their callers wait.

mod buckets;
mod closed_loop;
mod figures;
mod open_loop;
mod picture;
mod report;

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cenote::Config;

use crate::args::BenchArgs;
use crate::failure::{Failure, Verdict};
use crate::out::{self, Countdown};
use crate::service::Service;
use crate::target::Target;

pub(crate) use closed_loop::closed_loop;
pub(crate) use figures::Figures;
pub(crate) use picture::{Format, format as report_format, page};
use report::Report;

/// The first statements open connections and fill caches. They do not count.
const WARM_UP: Duration = Duration::from_millis(500);

pub(crate) async fn run(args: &BenchArgs) -> Result<Verdict, Failure> {
    let target = Target::parse(&args.url)?;
    let format = args.report.as_deref().map(picture::format).transpose()?;
    if let Some(file) = &args.report {
        check_writable(file)?;
    }
    let config = Config {
        name: Some("bench".to_owned()),
        max_size: args.max_size as usize,
        ..Config::default()
    };
    let service = Arc::new(Service::open(&target, config, &args.sql, args.simple).await?);
    // One statement tells whether all of them are refused.
    service.run().await?;
    let callers = args.callers.unwrap_or(args.max_size * 2) as usize;
    closed_loop(&service, callers, WARM_UP).await?;

    let lasts = Duration::from_secs(args.seconds);
    let before = service.status();
    let countdown = Countdown::start("bench", lasts);
    let figures = match args.rate {
        Some(rate) => open_loop::open_loop(&service, rate, lasts).await?,
        None => closed_loop(&service, callers, lasts).await?,
    };
    drop(countdown);
    let report = Report::new(&target, args, callers, &figures, &before, &service.status());
    service.close().await;

    if let (Some(file), Some(format)) = (&args.report, format) {
        write_report(file, &picture::draw(&report, &figures, format))?;
    }
    if args.json {
        out::print_json(&report)?;
    } else {
        out::print(&report.to_text(&figures))?;
    }
    Ok(match report.failed {
        0 => Verdict::Fine,
        _ => Verdict::Findings,
    })
}

/// Finds out before the work whether the report can be kept.
pub(crate) fn check_writable(file: &Path) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    let opened = options.append(true).create(true).open(file);
    opened.map(drop).map_err(|error| not_writable(file, &error))
}

pub(crate) fn write_report(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|error| not_writable(file, &error))
}

fn not_writable(file: &Path, error: &io::Error) -> Failure {
    let file = file.display();
    format!("cannot write `{file}`: {error}; name a place that you may write to").into()
}
