//! `cargo xtask test`: every test, doc test and example of the workspace.

use std::env;
use std::fs;
use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

use crate::command::{Cargo, Outcome};
use crate::servers::Servers;

/// An example shows one thing in seconds; after a minute it has hung.
const EXAMPLE_LIMIT: Duration = Duration::from_secs(60);

/// With filters, only the tests they name.
pub(crate) fn run(filters: &[&str]) -> Outcome {
    let servers = Servers::find()?;
    run_tests(filters, &[], servers.variables())?;
    match filters {
        [] => run_the_rest(&[], servers.variables()),
        _ => Ok(()),
    }
}

/// Runs everything, by a build with these options of cargo.
pub(crate) fn run_all(options: &[&str]) -> Outcome {
    let servers = Servers::find()?;
    run_tests(&[], options, servers.variables())?;
    run_the_rest(options, servers.variables())
}

fn run_the_rest(options: &[&str], urls: &Urls) -> Outcome {
    let docs = Cargo::new("test --workspace --all-features --doc").with(options);
    docs.passing(urls).run()?;
    run_examples(options, urls)
}

/// The URLs of the servers, as environment variables.
type Urls = [(String, String)];

/// Tests mostly wait, for servers and for limits to pass, so there are two for each core.
fn run_tests(filters: &[&str], options: &[&str], urls: &Urls) -> Outcome {
    if Cargo::new("nextest --version").works() {
        println!("tests run by cargo-nextest: it is installed");
        let nextest = Cargo::new("nextest run --workspace --all-features --no-fail-fast");
        let threads = (2 * available_parallelism().map_or(1, NonZero::get)).to_string();
        let nextest = nextest.with(&["--test-threads", &threads]);
        return nextest.with(options).with(filters).passing(urls).run();
    }
    println!("tests run by cargo test: cargo-nextest is not installed");
    let libtest = Cargo::new("test --workspace --all-features --lib --bins --tests");
    let libtest = libtest.with(options).with(&["--"]).with(filters);
    libtest.passing(urls).run()
}

fn run_examples(options: &[&str], urls: &Urls) -> Outcome {
    // With the features of the tests, so that it builds nothing that the tests did not.
    let build = Cargo::new("build --quiet --workspace --all-features --examples");
    build.with(options).run()?;
    let target = env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    for name in example_names()? {
        println!("example {name}");
        Cargo::tool(&format!("{target}/debug/examples/{name}"), "")
            .passing(urls)
            .run_within(EXAMPLE_LIMIT)?;
    }
    Ok(())
}

/// The files directly in `examples/`, in order, without their ending.
fn example_names() -> Result<Vec<String>, String> {
    let listing = fs::read_dir("examples")
        .map_err(|error| format!("cannot list examples/ ({error}); rerun: cargo xtask test"))?;
    let files = listing.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = files
        .filter_map(|file| Some(file.strip_suffix(".rs")?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}
