//! The `cenote` program: watch a pool at work. This file reads the arguments.

mod demo;
mod load;
mod page;
mod progress;
mod report;
mod sqlite;

use std::error::Error;
use std::iter::successors;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, value_parser};

/// Watch a cenote pool at work.
#[derive(Debug, Parser)]
#[command(name = "cenote", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Without a command the demo runs.
    #[command(flatten)]
    demo: DemoArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run many tasks on few SQLite connections with a live page, then print counts and waiting
    /// times (the default)
    Demo(DemoArgs),
}

#[derive(Debug, Args)]
struct DemoArgs {
    /// How long to run, in seconds, from 1 to 3600
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// How many tasks share the connections
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u32).range(1..=10_000))]
    tasks: u32,
    /// How many connections the pool may open; each has a thread
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=256))]
    size: u32,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let Command::Demo(args) = cli.command.unwrap_or(Command::Demo(cli.demo));
    match demo::run(&args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", whole_story(&*error));
            ExitCode::FAILURE
        }
    }
}

/// Returns an error and all its causes in one line. A cause is left out if the text so far contains
/// it.
fn whole_story(error: &(dyn Error + 'static)) -> String {
    let mut story = error.to_string();
    for cause in successors(error.source(), |&error| error.source()) {
        let cause = cause.to_string();
        if !story.contains(&cause) {
            story.push_str(": ");
            story.push_str(&cause);
        }
    }
    story
}

#[cfg(test)]
mod tests;
