//! The folder of a private server, and the user that owns it.

use std::collections::hash_map::RandomState;
use std::env;
use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Removed on drop.
#[derive(Debug)]
pub(crate) struct Home {
    path: PathBuf,
    /// The user and group for the server, if this process runs as root.
    owner: Option<(u32, u32)>,
    uid: u32,
}

impl Home {
    /// Makes a new folder. As root it belongs to `user`, because servers refuse to run as root.
    pub(crate) fn new(user: &str) -> io::Result<Self> {
        let path = env::temp_dir().join(format!("cenote-server-{:016x}", random()));
        DirBuilder::new().mode(0o700).create(&path)?;
        let mut home = Self {
            uid: fs::metadata(&path)?.uid(),
            path,
            owner: None,
        };
        // The owner of a new folder is the user of this process.
        if home.uid == 0 {
            let (uid, gid) = find_user(user)?;
            chown(&home.path, Some(uid), Some(gid))?;
            home.owner = Some((uid, gid));
            home.uid = uid;
        }
        Ok(home)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the owner of the files that the server writes.
    pub(crate) fn uid(&self) -> u32 {
        self.uid
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns a command that runs here as the owner of the folder, in English and without the
    /// settings of this user.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.path);
        command.env("LC_ALL", "C").env("HOME", &self.path);
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        if let Some((uid, gid)) = self.owner {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Runs a program to its end. It must succeed.
    pub(crate) fn run(&self, program: &Path, args: &[&str]) -> io::Result<()> {
        let output = self.command(program).args(args).output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stdout, output.stderr].concat();
        Err(io::Error::other(format!(
            "{} failed with {}: {}",
            program.display(),
            output.status,
            String::from_utf8_lossy(&said).trim()
        )))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // At worst the folder is left in the temporary folder.
        let _ = fs::remove_dir_all(&self.path);
    }
}

pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Returns the numbers of a user and of its group.
fn find_user(name: &str) -> io::Result<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd")?;
    let numbers = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let found = fields.next() == Some(name);
        let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        found.then_some((uid, gid))
    });
    numbers.ok_or_else(|| {
        io::Error::other(format!(
            "there is no user `{name}` to run the server as, and it refuses root: add it, or run as an ordinary user"
        ))
    })
}
