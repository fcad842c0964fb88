//! The arguments of the program.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use clap_complete::Shell;

/// Watch, measure, tune and check a cenote pool.
#[derive(Debug, Parser)]
#[command(name = "cenote", version, args_conflicts_with_subcommands = true)]
#[command(
    after_help = "Exit codes: 0 fine, 1 a failure or a finding, 2 wrong usage, 130 interrupted."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Without a command the demo runs.
    #[command(flatten)]
    pub(crate) demo: DemoArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Play six scenes of a small shop on few connections, with a live page, then print a report
    /// (the default)
    Demo(DemoArgs),
    /// Measure statements through the pool, by callers that wait or at a fixed rate
    Bench(BenchArgs),
    /// Find the `max_size` beyond which more connections bring nothing
    Tune(TuneArgs),
    /// Check a server and a configuration against each other, or find what a migration must touch
    Doctor(DoctorArgs),
    /// Show the pools of a running service, by the address of its live page
    Top(TopArgs),
    /// Show the members of a fleet, their shares and wishes, by the server that keeps it
    Fleet(FleetArgs),
    /// Record the acquires of a running service to a file, by the address of its live page
    Record(RecordArgs),
    /// Play a recorded trace with other sizes, and show how long its callers would have waited
    Replay(ReplayArgs),
    /// Look at configuration files
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print completions for a shell
    Completions {
        /// The shell to complete for
        shell: Shell,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// A server for the shop: `postgres://`, `mysql://` or `redis://`. It gets a schema, a database
    /// or keys of its own, which are removed in the end. Without a URL, SQLite is used
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// How long to run, in seconds, from 1 to 3600
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = value_parser!(u64).range(1..=3600))]
    pub(crate) seconds: u64,
    /// How many tasks share the connections
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) tasks: u32,
    /// How many connections the pool may open; each of SQLite has a thread
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=256))]
    pub(crate) size: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// The URL of the server, or the path of a SQLite file
    pub(crate) url: String,
    /// A statement, or a command of Redis; several take turns at random. Without one, a mix of
    /// reads that need no table
    #[arg(long, value_name = "SQL")]
    pub(crate) sql: Vec<String>,
    /// How long to measure, in seconds, from 1 to 3600
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u64).range(1..=3600))]
    pub(crate) seconds: u64,
    /// How many connections the pool may open
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u32).range(1..=1000))]
    pub(crate) max_size: u32,
    /// Closed loop: how many callers ask again as soon as they are served; twice `max-size` by
    /// default
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) callers: Option<u32>,
    /// Open loop: how many operations begin per second, whether or not earlier ones have ended.
    /// Their time counts from when they should have begun
    #[arg(long, value_name = "N", conflicts_with = "callers", value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rate: Option<u32>,
    /// PostgreSQL: send statements as text, not prepared; for PgBouncer in transaction mode
    #[arg(long)]
    pub(crate) simple: bool,
    /// Write a report to keep; its name ends in `.svg` or `.html`
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    /// The URL of the server, or the path of a SQLite file
    pub(crate) url: String,
    /// A statement, or a command of Redis; several take turns at random. Without one, a mix of
    /// reads that need no table
    #[arg(long, value_name = "SQL")]
    pub(crate) sql: Vec<String>,
    /// The largest size to try
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u32).range(2..=1000))]
    pub(crate) max_size: u32,
    /// How many instances of the service share the server
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=100_000))]
    pub(crate) instances: u32,
    /// How long each size is measured, in milliseconds
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = value_parser!(u64).range(100..=600_000))]
    pub(crate) step_ms: u64,
    /// PostgreSQL: send statements as text, not prepared; for PgBouncer in transaction mode
    #[arg(long)]
    pub(crate) simple: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a file of pool settings, in TOML or JSON
    Check(CheckArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The file; its name ends in `.toml` or `.json`
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The URL of the server, or with `--from` the folder or file of the source code
    #[arg(value_name = "URL or SOURCE")]
    pub(crate) place: String,
    /// The settings of the pool, in TOML or JSON; the defaults if there is no file
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub(crate) config: Option<PathBuf>,
    /// How many instances of the service have such a pool
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=100_000), conflicts_with = "from")]
    pub(crate) instances: u32,
    /// List the lines of code that a migration from this pool must touch
    #[arg(long, value_name = "POOL")]
    pub(crate) from: Option<From>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The address of the live page, such as `http://127.0.0.1:3000/pools`
    pub(crate) url: String,
    /// Print one table and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Print JSON and end
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    /// The URL of the server that keeps the fleet: `postgres://`, `mysql://`, `redis://` or
    /// `nats://`. The program reads, and does not join
    pub(crate) url: String,
    /// The name of the group
    pub(crate) group: String,
    /// Print one table and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Watch for so many seconds, then print what was seen and end
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = value_parser!(u64).range(0..=3600))]
    pub(crate) seconds: u64,
    /// Print JSON and end
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// The address of the live page, such as `http://127.0.0.1:3000/pools`
    pub(crate) url: String,
    /// The name of the pool; needed if the service has several
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// The file to write
    #[arg(long, value_name = "FILE", default_value = "cenote.trace")]
    pub(crate) out: PathBuf,
    /// How long to record, in seconds, from 1 to 86400
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: u64,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The trace, from `cenote record` or written by the service itself
    pub(crate) trace: PathBuf,
    /// The sizes to try: `8`, `4..40` or `4,8,16`. From a quarter to four times the recorded size
    /// by default. Of a long range, a dozen sizes are tried
    #[arg(long, value_name = "SIZES")]
    pub(crate) max_size: Option<String>,
    /// Write a report to keep; its name ends in `.svg` or `.html`
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A pool to migrate from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum From {
    Sqlx,
    Bb8,
    Deadpool,
}
