//! A self-signed certificate for tests of TLS.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A certificate for `127.0.0.1`, and its key.
#[derive(Debug)]
pub struct Certificate {
    /// The file of the certificate, which is its own root.
    pub crt: PathBuf,
    /// The file of the key.
    pub key: PathBuf,
}

impl Certificate {
    /// Makes a certificate in a folder. Every user may read the folder and the key, which guards
    /// nothing: servers run as users of their own.
    pub fn make(folder: &Path) -> io::Result<Self> {
        let [crt, key] = ["crt", "key"].map(|name| folder.join(name));
        let output = Command::new("openssl")
            .args("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=cenote".split(' '))
            .args("-addext subjectAltName=IP:127.0.0.1".split(' '))
            .args("-addext basicConstraints=critical,CA:FALSE".split(' '))
            .args([Path::new("-keyout"), &key, Path::new("-out"), &crt])
            .output();
        let output = output.map_err(|error| {
            let text = format!("`openssl` makes the certificate, and must be installed: {error}");
            io::Error::new(error.kind(), text)
        })?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(io::Error::other(format!("openssl: {text}")));
        }
        for_all(folder, 0o755)?;
        for_all(&key, 0o644)?;
        Ok(Self { crt, key })
    }
}

fn for_all(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}
