//! TLS: a server whose root the user names is trusted, and any other is refused with the fix.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::{Command, Output};

use cenote_servers::{Certificate, Server, mariadb, postgres, redis};
use tempfile::{TempDir, tempdir};

use super::admin;
use crate::{cenote, text};

/// A certificate, and a user who may trust it.
struct Trust {
    certificate: Certificate,
    _folder: TempDir,
}

impl Trust {
    fn new() -> Self {
        let folder = tempdir().unwrap();
        Self {
            certificate: Certificate::make(folder.path()).unwrap(),
            _folder: folder,
        }
    }

    /// Returns the files of the key and of the certificate.
    fn files(&self) -> [&str; 2] {
        let Certificate { key, crt } = &self.certificate;
        [key, crt].map(|file| file.to_str().unwrap())
    }

    /// Runs the program as a user who names this certificate.
    fn trusted(&self, args: &[&str]) -> Output {
        let mut program = Command::new(env!("CARGO_BIN_EXE_cenote"));
        program
            .args(args)
            .env("SSL_CERT_FILE", &self.certificate.crt);
        program.output().unwrap()
    }

    /// The doctor finds TLS and the bench uses it, but only for a user who trusts the server.
    #[track_caller]
    fn opens(&self, url: &str) {
        let doctor = self.trusted(&["doctor", url]);
        let bench = self.trusted(&["bench", url, "--seconds", "1", "--json"]);
        let stranger = cenote(&["doctor", url]);

        assert!(doctor.stderr.is_empty(), "{}", text(&doctor.stderr));
        assert!(bench.status.success(), "{}", text(&bench.stderr));
        let said = text(&stranger.stderr);
        assert_eq!(stranger.status.code(), Some(1), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("`SSL_CERT_FILE`"), "{said}");
    }
}

#[test]
fn postgresql_is_reached_by_tls_if_its_root_is_trusted() {
    let trust = Trust::new();
    let mut server = postgres::start().unwrap();
    install(&trust, &server);
    admin::postgres(server.url(), "alter system set ssl = on");
    server.restart().unwrap();

    trust.opens(&format!("{}?sslmode=require", server.url()));
}

/// Copies it into the data folder of the server, readable for the server only.
fn install(trust: &Trust, server: &Server) {
    let data = server.folder().join("data");
    let owner = fs::metadata(&data).unwrap();
    for (file, to) in trust.files().into_iter().zip(["server.key", "server.crt"]) {
        let to = data.join(to);
        fs::copy(file, &to).unwrap();
        fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&to, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
}

#[test]
fn mariadb_is_reached_by_tls_if_its_root_is_trusted() {
    let trust = Trust::new();
    let [key, crt] = trust.files();
    let settings = [("ssl-key", key), ("ssl-cert", crt)];
    let server = mariadb::start_with(&settings).unwrap();

    trust.opens(&format!("{}?require_ssl=true", server.url()));
}

#[test]
fn redis_is_reached_by_tls_if_its_root_is_trusted() {
    let trust = Trust::new();
    let (_server, url) = redis_with_tls(&trust);

    trust.opens(&url);
}

/// Starts a server with a port for TLS beside its own. If another program takes that port first, it
/// tries another one.
fn redis_with_tls(trust: &Trust) -> (Server, String) {
    let [key, crt] = trust.files();
    let start = || {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port().to_string();
        drop(free);
        let settings = [
            ("tls-port", port.as_str()),
            ("tls-key-file", key),
            ("tls-cert-file", crt),
            ("tls-ca-cert-file", crt),
            ("tls-auth-clients", "no"),
        ];
        let server = redis::start_with(&settings).ok()?;
        Some((server, format!("rediss://127.0.0.1:{port}")))
    };
    let mut tries = std::iter::repeat_with(start).take(20);
    tries.find_map(|started| started).expect("a free port")
}
