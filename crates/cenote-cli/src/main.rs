//! The `cenote` program. This file reads the arguments, runs a command and returns its exit code.

mod args;
mod bench;
mod clock;
mod config_file;
mod demo;
mod doctor;
mod failure;
mod fleet;
mod out;
mod record;
mod replay;
mod service;
mod target;
mod top;
mod tune;

use std::panic;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Cli, Command, ConfigCommand};
use failure::{Failure, Usage, Verdict, whole_story};

/// As a shell reports a program that an interrupt has ended.
const INTERRUPTED: u8 = 130;

#[tokio::main]
async fn main() -> ExitCode {
    // A user gets one line. A developer gets the line of code, too.
    panic::set_hook(Box::new(|bug| {
        let text = bug.to_string().replace('\n', " ");
        out::complain(&format!("a bug in cenote, please report it: {text}"));
    }));
    let cli = Cli::parse();
    let command = cli.command.unwrap_or(Command::Demo(cli.demo));
    // The demo hears an interrupt itself, and drains. A recording keeps what it has.
    let hears_interrupts = matches!(command, Command::Demo(_) | Command::Record(_));
    let ended = tokio::select! {
        ended = run(command) => ended,
        _ = tokio::signal::ctrl_c(), if !hears_interrupts => Ok(Verdict::Interrupted),
    };
    match ended {
        Ok(Verdict::Fine) => ExitCode::SUCCESS,
        Ok(Verdict::Findings) => ExitCode::FAILURE,
        Ok(Verdict::Interrupted) => {
            out::complain("interrupted before the end, so there is no result: run it again");
            ExitCode::from(INTERRUPTED)
        }
        Err(error) => {
            out::complain(&whole_story(&*error));
            let is_usage = error.downcast_ref::<Usage>().is_some();
            ExitCode::from(if is_usage { 2 } else { 1 })
        }
    }
}

async fn run(command: Command) -> Result<Verdict, Failure> {
    match command {
        Command::Demo(args) => demo::run(&args).await,
        Command::Bench(args) => bench::run(&args).await,
        Command::Tune(args) => tune::run(&args).await,
        Command::Top(args) => top::run(&args).await,
        Command::Fleet(args) => fleet::run(&args).await,
        Command::Record(args) => record::run(&args).await,
        Command::Replay(args) => replay::run(&args).await,
        Command::Doctor(args) => doctor::run(&args).await,
        Command::Config(ConfigCommand::Check(args)) => config_file::check(&args),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "cenote", &mut text);
            out::print(&String::from_utf8_lossy(&text))?;
            Ok(Verdict::Fine)
        }
    }
}
