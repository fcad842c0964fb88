//! `cargo xtask api`: compares the public API of each published library with its listing in `api/`.
//!
//! A listing is read from the pages that rustdoc writes, because they are what a user sees, and the
//! stable toolchain writes them. Implementations that the compiler or a blanket gives are left out.

mod changes;
mod page;
mod pages;
#[cfg(test)]
mod tests;
mod text;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{Cargo, Outcome};
use crate::floors;
use crate::packages::{self, Package};

use changes::Changes;

const FOLDER: &str = "api";

pub(crate) fn run(args: &[&str]) -> Outcome {
    match args {
        [] => check(&document()?),
        ["--write"] => write(&document()?),
        _ => Err("usage: cargo xtask api [--write]".into()),
    }
}

/// Writes the pages of the libraries and of the guide, and returns the folder of the libraries.
fn document() -> Result<PathBuf, String> {
    let guide = Cargo::new("doc -p cenote-guide --no-deps --target-dir target/floors/guide");
    guide.variable("RUSTDOCFLAGS", "-D warnings").run()?;
    floors::document()
}

/// Compares the listings with the pages.
fn check(pages: &Path) -> Outcome {
    let rustdoc = rustdoc()?;
    let (mut breaking, mut additions) = (0, 0);
    let libraries = libraries()?;
    for package in &libraries {
        let path = listing_of(package);
        let before = fs::read_to_string(&path).unwrap_or_default();
        let after = list(package, pages, &rustdoc)?;
        let changes = Changes::between(&before, &after);
        print!("{}", changes.report(&package.name, &rustdoc));
        breaking += changes.breaking();
        additions += changes.additions();
    }
    has_no_stale_listing(&libraries)?;
    if breaking + additions == 0 {
        println!("the public API is as listed in {FOLDER}/");
        return Ok(());
    }
    Err(format!(
        "the public API is not as listed: {breaking} breaking, {additions} added; \
         if they are meant, add a line to CHANGELOG.md and run: cargo xtask api --write"
    ))
}

fn has_no_stale_listing(libraries: &[Package]) -> Outcome {
    let files = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let mut paths = files.map(|file| format!("{FOLDER}/{}", file.file_name().display()));
    let stale = paths.find(|path| !libraries.iter().any(|it| listing_of(it) == *path));
    stale.map_or(Ok(()), |path| {
        Err(format!("{path} is of no published library: remove it"))
    })
}

fn write(pages: &Path) -> Outcome {
    let rustdoc = rustdoc()?;
    fs::create_dir_all(FOLDER).map_err(|error| format!("cannot make {FOLDER}/ ({error})"))?;
    for package in libraries()? {
        let path = listing_of(&package);
        let listing = list(&package, pages, &rustdoc)?;
        let lines = listing.lines().count();
        fs::write(&path, listing).map_err(|error| format!("cannot write {path} ({error})"))?;
        println!("{path}: {lines} lines");
    }
    Ok(())
}

/// The listing of a library, with a first line that says which rustdoc it comes from.
fn list(package: &Package, pages: &Path, rustdoc: &str) -> Result<String, String> {
    let name = package.name.replace('-', "_");
    let lines = pages::list(pages, &name)?;
    let head = changes::head(&package.name, rustdoc);
    Ok(format!("{head}\n{}\n", lines.join("\n")))
}

fn listing_of(package: &Package) -> String {
    format!("{FOLDER}/{}.txt", package.name)
}

fn libraries() -> Result<Vec<Package>, String> {
    let mut packages = packages::published()?;
    packages.retain(|package| package.has_library);
    Ok(packages)
}

/// The version of rustdoc, such as `1.95.0`.
fn rustdoc() -> Result<String, String> {
    let said = Command::new("rustdoc").arg("--version").output();
    let said = said.map_err(|error| format!("cannot run rustdoc ({error})"))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let version = said.split_whitespace().nth(1);
    Ok(version.unwrap_or("of an unknown version").to_owned())
}
