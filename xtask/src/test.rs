//! `cargo xtask test`: every test, doc test and example of the workspace.

use std::fs;
use std::time::Duration;

use crate::command::{Cargo, Outcome};
use crate::servers::Servers;

/// An example shows one thing in seconds; after a minute it has hung.
const EXAMPLE_LIMIT: Duration = Duration::from_secs(60);

/// With filters, only the tests they name.
pub(crate) fn run(filters: &[&str]) -> Outcome {
    let servers = Servers::find()?;
    let urls = servers.variables();
    run_tests(filters, &urls)?;
    if !filters.is_empty() {
        return Ok(());
    }
    let docs = Cargo::new("test --workspace --all-features --doc");
    docs.passing(&urls).run()?;
    run_examples(&urls)
}

/// The URLs of the servers, as environment variables.
type Urls = [(&'static str, String)];

fn run_tests(filters: &[&str], urls: &Urls) -> Outcome {
    if Cargo::new("nextest --version").works() {
        println!("tests run by cargo-nextest: it is installed");
        let nextest = Cargo::new("nextest run --workspace --all-features");
        return nextest.with(filters).passing(urls).run();
    }
    println!("tests run by cargo test: cargo-nextest is not installed");
    let libtest = Cargo::new("test --workspace --all-features --lib --bins --tests --");
    libtest.with(filters).passing(urls).run()
}

fn run_examples(urls: &Urls) -> Outcome {
    // Built first, so that the limit measures the example and not the compiler.
    Cargo::new("build --quiet -p cenote-examples --examples").run()?;
    for name in example_names()? {
        println!("example {name}");
        Cargo::new("run --quiet -p cenote-examples --example")
            .with(&[&name])
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
