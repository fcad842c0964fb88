//! The floors step of the gate: the published libraries are checked with the oldest dependencies
//! that they allow, and by the oldest Rust where that is installed. Without features each is
//! checked alone: in a build of the whole workspace a crate may use what another has turned on.
//!
//! They are built in a workspace of their own, made from the real manifests: `target/floors`. Its
//! lock file is kept in the tree, so that the step builds the same thing on every machine.

mod msrv;
#[cfg(test)]
mod tests;
mod workspace;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::command::{Cargo, Outcome};
use crate::packages;

use workspace::{Member, Workspace};

const HOME: &str = "target/floors";
const LOCK: &str = "xtask/floors.lock";
const LOCK_IN_USE: &str = "target/floors/Cargo.lock";
const BUILT: &str =
    "--locked --manifest-path target/floors/Cargo.toml --target-dir target/floors/built";

pub(crate) fn run(args: &[&str]) -> Outcome {
    match args {
        [] => check(),
        ["--write"] => write(),
        _ => Err("usage: cargo xtask floors [--write]".into()),
    }
}

/// Checks all published libraries, and runs the core's unit tests.
pub(crate) fn check() -> Outcome {
    let workspace = prepare_locked()?;
    let all = cargo("check", "--workspace --all-features");
    all.run().map_err(stale)?;
    for member in &workspace.members {
        cargo(
            "check",
            &format!("-p {} --no-default-features", member.name),
        )
        .run()?;
    }
    cargo("test --quiet", "-p cenote --lib").run()?;
    msrv::check(&workspace)
}

/// Writes the pages of all published libraries, and returns their folder. A warning is a failure.
///
/// They are written here because a page needs its dependencies checked, and the floors have checked
/// theirs. For the newest versions nothing else has: tests need them built.
pub(crate) fn document() -> Result<PathBuf, String> {
    prepare_locked()?;
    let doc = cargo("doc", "--workspace --no-deps --all-features");
    let warnings = ("RUSTDOCFLAGS".to_owned(), "-D warnings".to_owned());
    doc.passing(&[warnings]).run().map_err(stale)?;
    Ok(PathBuf::from("target/floors/built/doc"))
}

fn stale(failure: String) -> String {
    format!("{failure}; if the lock file is stale: cargo xtask floors --write")
}

/// A command in the workspace of the floors. Always with the same variable, because cargo builds
/// everything again if it changes.
fn cargo(command: &str, options: &str) -> Cargo {
    Cargo::new(&format!("{command} {BUILT} {options}")).variable("RUSTFLAGS", "-D warnings")
}

/// Finds the oldest versions again. Needed after a change of a dependency or of its version.
fn write() -> Outcome {
    let workspace = prepare()?;
    // The flag is unstable, but it decides only which versions are written down.
    let update = "update -Z direct-minimal-versions --manifest-path target/floors/Cargo.toml";
    let update = Cargo::new(update).variable("RUSTC_BOOTSTRAP", "1");
    update.run()?;
    let lock = fs::read_to_string(LOCK_IN_USE).map_err(|error| unread(LOCK_IN_USE, &error))?;
    write_new(LOCK, &lock).map_err(|error| unread(LOCK, &error))?;
    workspace.has_floors_of(&lock)?;
    println!("the floors are in {LOCK}; to build with them: cargo xtask floors");
    Ok(())
}

/// Writes the workspace of the floors, with its lock file.
fn prepare_locked() -> Result<Workspace, String> {
    let workspace = prepare()?;
    let lock = fs::read_to_string(LOCK).map_err(|error| unread(LOCK, &error))?;
    workspace.has_floors_of(&lock)?;
    write_new(LOCK_IN_USE, &lock).map_err(|error| unread(LOCK_IN_USE, &error))?;
    Ok(workspace)
}

/// Writes the manifests of the workspace of the floors.
fn prepare() -> Result<Workspace, String> {
    let workspace = read_workspace()?;
    let write = || -> io::Result<()> {
        fs::create_dir_all(HOME)?;
        write_new(&format!("{HOME}/Cargo.toml"), &workspace.manifest())?;
        for member in &workspace.members {
            let home = format!("{HOME}/crates/{}", member.name);
            fs::create_dir_all(&home)?;
            write_new(&format!("{home}/Cargo.toml"), &member.manifest())?;
        }
        Ok(())
    };
    write().map_err(|error| unread(HOME, &error))?;
    Ok(workspace)
}

/// A program has no floors: it is built with the versions of its own lock file.
fn read_workspace() -> Result<Workspace, String> {
    let mut packages = packages::published()?;
    packages.retain(|package| package.has_library);
    let members = packages
        .iter()
        .filter_map(|it| Member::published(&it.manifest));
    Ok(Workspace {
        members: members.collect(),
        root: fs::read_to_string("Cargo.toml").map_err(|error| unread("Cargo.toml", &error))?,
    })
}

/// Leaves a file alone that is as it should be, so that cargo sees no change.
fn write_new(path: &str, text: &str) -> io::Result<()> {
    let path = Path::new(path);
    if fs::read_to_string(path).is_ok_and(|before| before == text) {
        return Ok(());
    }
    fs::write(path, text)
}

fn unread(path: &str, error: &io::Error) -> String {
    format!("cannot read or write {path} ({error}); rerun: cargo xtask floors --write")
}
