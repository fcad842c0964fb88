//! The workspace of the floors, as text: the manifests of the published crates without what only
//! their tests need, and their sources where they are.

use crate::manifest::{Entry, entries, is_published, package_name};

/// Dependencies that the core's unit tests need. The others are left out: they would have to agree
/// with the oldest versions too.
const FOR_TESTS: &[&str] = &["tokio"];

/// The published crates, and the manifest of the real workspace.
pub(super) struct Workspace {
    pub(super) root: String,
    pub(super) members: Vec<Member>,
}

/// A published crate.
pub(super) struct Member {
    pub(super) name: String,
    text: String,
}

impl Workspace {
    pub(super) fn manifest(&self) -> String {
        let members = self.members.iter();
        let members: Vec<String> = members
            .map(|it| format!("\"crates/{}\"", it.name))
            .collect();
        let mut text = format!(
            "[workspace]\nresolver = \"3\"\nmembers = [{}]\n",
            members.join(", ")
        );
        keep_tables(&self.root, &mut text, |table| {
            table.starts_with("workspace.") || table.starts_with("profile.")
        });
        text
    }

    /// Fails unless the lock file has exactly the oldest version that the manifest allows, for each
    /// dependency of a published crate.
    pub(super) fn has_floors_of(&self, lock: &str) -> Result<(), String> {
        let mut wrong = Vec::new();
        for entry in entries(&self.root) {
            let name = entry.key;
            let Some(floor) = floor(&entry) else {
                continue;
            };
            let is_used = self.members.iter().any(|it| it.depends_on(name));
            let locked = versions(lock, name);
            if is_used && !locked.contains(&floor.as_str()) {
                wrong.push(format!("{name} {floor} ({})", locked.join(", ")));
            }
        }
        if wrong.is_empty() {
            return Ok(());
        }
        Err(format!(
            "Cargo.toml allows versions that are not in xtask/floors.lock (in brackets): {}; \
             write the oldest that exist and work, then run: cargo xtask floors --write",
            wrong.join(", ")
        ))
    }
}

impl Member {
    /// `None` if this crate is not for others.
    pub(super) fn published(text: &str) -> Option<Self> {
        let name = package_name(text).filter(|_| is_published(text))?;
        Some(Self {
            name: name.to_owned(),
            text: text.to_owned(),
        })
    }

    /// The real manifest with the real source, without the tests and their dependencies.
    pub(super) fn manifest(&self) -> String {
        let mut text = String::new();
        keep_tables(&self.text, &mut text, |table| {
            !table.starts_with('[') && !table.ends_with("dev-dependencies") && table != "lib"
        });
        let source = format!("path = \"../../../../crates/{}/src/lib.rs\"", self.name);
        text.push_str(&format!("[lib]\n{source}\n"));
        keep_entries(&self.text, &mut text, |entry| entry.table == "lib");
        text.push_str("[dev-dependencies]\n");
        keep_entries(&self.text, &mut text, |entry| {
            entry.table == "dev-dependencies" && FOR_TESTS.contains(&entry.dependency())
        });
        text
    }

    /// The oldest Rust that it promises to build with.
    pub(super) fn rust_version(&self) -> Option<String> {
        let entries = entries(&self.text);
        let version = entries.iter().find(|it| it.key == "rust-version")?;
        Some(version.value.trim_matches('"').to_owned())
    }

    /// The features that need no crate of ours with a newer Rust than this.
    pub(super) fn features_for(&self, rust: &str, workspace: &Workspace) -> Vec<String> {
        let entries = entries(&self.text).into_iter();
        let features = entries.filter(|entry| entry.table == "features");
        let usable = features.filter(|entry| {
            let mut newer = workspace.members.iter().filter(|other| {
                let other = other.rust_version();
                other.is_some_and(|other| is_newer(&other, rust))
            });
            !newer.any(|other| entry.value.contains(&format!("\"dep:{}\"", other.name)))
        });
        usable.map(|entry| entry.key.to_owned()).collect()
    }

    fn depends_on(&self, name: &str) -> bool {
        entries(&self.text).iter().any(|entry| {
            let of_tests = entry.table.ends_with("dev-dependencies");
            entry.table.ends_with("dependencies") && !of_tests && entry.dependency() == name
        })
    }
}

/// The oldest version that a line of the root manifest allows, with all three numbers. Crates of
/// ours have none.
fn floor(entry: &Entry<'_>) -> Option<String> {
    if entry.table != "workspace.dependencies" || entry.value.contains("path = ") {
        return None;
    }
    let version = match entry.value.split_once("version = ") {
        Some((_, version)) => version,
        None => entry.value,
    };
    let version = version.split('"').nth(1)?;
    let missing = 2_usize.saturating_sub(version.matches('.').count());
    Some(format!("{version}{}", ".0".repeat(missing)))
}

/// The versions of a package in a lock file.
fn versions<'a>(lock: &'a str, name: &str) -> Vec<&'a str> {
    let mark = format!("name = \"{name}\"\nversion = \"");
    let packages = lock.match_indices(&mark);
    let versions = packages.map(|(at, _)| &lock[at + mark.len()..]);
    versions.filter_map(|rest| rest.split('"').next()).collect()
}

/// Returns whether one version of Rust is newer than another.
pub(super) fn is_newer(one: &str, other: &str) -> bool {
    let numbers = |version: &str| -> Vec<u32> {
        let numbers = version.split('.');
        numbers.filter_map(|number| number.parse().ok()).collect()
    };
    numbers(one) > numbers(other)
}

fn keep_tables(from: &str, to: &mut String, keep: fn(&str) -> bool) {
    let mut kept = false;
    for line in from.lines() {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.split(" #").next().unwrap_or_default().trim_end();
            kept = keep(header.strip_suffix(']').unwrap_or(header));
        }
        if kept {
            to.push_str(line);
            to.push('\n');
        }
    }
}

fn keep_entries(from: &str, to: &mut String, keep: fn(&Entry<'_>) -> bool) {
    for entry in entries(from).iter().filter(|entry| keep(entry)) {
        to.push_str(&format!("{} = {}\n", entry.key, entry.value));
    }
}
