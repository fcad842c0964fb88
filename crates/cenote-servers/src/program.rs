//! Finds the server programs, and installs them.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where Debian keeps server programs that are not in every user's path.
const SERVER_PATHS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin"];

/// It has a folder for each version of PostgreSQL.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";

/// Finds a program by name. If it is missing and this process may, it installs the package first.
pub(crate) fn obtain(name: &str, package: &str, variable: &str) -> io::Result<PathBuf> {
    let cure =
        format!("run `apt-get install {package}` as root, or name a running server in {variable}");
    obtain_or(name, package, &cure)
}

/// Does the same. The error says what else the user can do.
pub(crate) fn obtain_or(name: &str, package: &str, cure: &str) -> io::Result<PathBuf> {
    if let Some(program) = find(name) {
        return Ok(program);
    }
    if !is_root() {
        return Err(missing(name, cure));
    }
    eprintln!("cenote-servers: `{name}` is missing: installing {package}");
    // The package lists may be missing or old. Then they are fetched, and the install is tried
    // again.
    let said = install(package).or_else(|_| {
        apt_get(&["update"])?;
        install(package)
    });
    find(name).ok_or_else(|| match said {
        Ok(()) => missing(name, cure),
        Err(said) => missing(name, &format!("{said}; {cure}")),
    })
}

fn missing(name: &str, cure: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::NotFound,
        format!("`{name}` is not installed: {cure}"),
    )
}

fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(SERVER_PATHS.map(PathBuf::from));
    let mut programs = folders.chain(postgres_folders()).map(|it| it.join(name));
    programs.find(|program| program.is_file())
}

/// Returns the folders with the newest version first.
fn postgres_folders() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(POSTGRES_VERSIONS) else {
        return Vec::new();
    };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort_by_key(|folder| std::cmp::Reverse(version(folder)));
    folders.iter().map(|folder| folder.join("bin")).collect()
}

fn version(folder: &Path) -> u32 {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.parse().unwrap_or(0)
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn install(package: &str) -> Result<(), String> {
    apt_get(&["install", "-y", "--no-install-recommends", package])
}

/// Runs `apt-get`. It waits for its turn, because other processes may be installing too.
fn apt_get(args: &[&str]) -> Result<(), String> {
    let output = Command::new("apt-get")
        .args(["-q", "-o", "DPkg::Lock::Timeout=300"])
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run apt-get: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("apt-get {} said: {}", args[0], said.trim()))
}
