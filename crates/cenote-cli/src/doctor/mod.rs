//! `cenote doctor`: looks at a server and at the settings of a pool, and says what does not fit.

mod finding;
mod migration;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod proxy;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
mod shared;
mod sqlite;

use std::path::Path;

use cenote::Config;
use serde::Serialize;

use crate::args::DoctorArgs;
use crate::config_file;
use crate::failure::{Failure, Verdict};
use crate::out;
use crate::target::Target;

use finding::{Finding, Severity};

/// The settings that a server is compared with.
#[derive(Debug)]
struct Plan {
    config: Config,
    instances: u32,
}

impl Plan {
    /// The pool of the doctor itself needs few connections.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
    fn own_config() -> Config {
        Config {
            max_size: 2,
            ..Config::default()
        }
    }
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    url: String,
    instances: u32,
    max_size: usize,
    findings: &'a [Finding],
}

pub(crate) async fn run(args: &DoctorArgs) -> Result<Verdict, Failure> {
    if let Some(from) = args.from {
        return migration::run(from, Path::new(&args.place), args.json);
    }
    let target = Target::parse(&args.place)?;
    let plan = Plan {
        config: config_file::read(args.config.as_deref())?,
        instances: args.instances,
    };
    let mut findings = match &target {
        Target::Sqlite(url) => sqlite::look(url, &plan)?,
        #[cfg(feature = "postgres")]
        Target::Postgres(url) => postgres::look(url, &plan).await?,
        #[cfg(feature = "mysql")]
        Target::Mysql(url) => mysql::look(url, &plan).await?,
        #[cfg(feature = "redis")]
        Target::Redis(url) => redis::look(url, &plan).await?,
    };
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    if args.json {
        out::print_json(&Report {
            url: target.shown(),
            instances: plan.instances,
            max_size: plan.config.max_size,
            findings: &findings,
        })?;
    } else {
        out::print(&finding::show(&findings, out::paint()))?;
    }
    let is_fine = findings.iter().all(|it| it.severity < Severity::Warning);
    Ok(match is_fine {
        true => Verdict::Fine,
        false => Verdict::Findings,
    })
}
