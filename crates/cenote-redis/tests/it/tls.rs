//! TLS that is asked for is used on every connection, or the open fails.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cenote::Manager;
use cenote::error::ErrorClass;
use cenote_redis::{BuildError, Builder, Pool};
use cenote_servers::Server;
use redis::AsyncCommands;
use tempfile::TempDir;

use crate::patient;

/// A self-signed certificate for `127.0.0.1`, and its key. Every user may read the key, which
/// guards nothing.
struct Certificate(TempDir);

impl Certificate {
    fn new() -> Self {
        let certificate = Self(tempfile::tempdir().unwrap());
        let made = Command::new("openssl")
            .args("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=cenote".split(' '))
            .args("-addext subjectAltName=IP:127.0.0.1".split(' '))
            .args("-addext basicConstraints=critical,CA:FALSE".split(' '))
            .args([Path::new("-keyout"), &certificate.file("key")])
            .args([Path::new("-out"), &certificate.file("crt")])
            .output();
        let made = made.expect("`openssl` must be installed: it makes the certificate");
        assert!(made.status.success(), "{made:?}");
        fs::set_permissions(certificate.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(certificate.file("key"), fs::Permissions::from_mode(0o644)).unwrap();
        certificate
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn pem(&self) -> Vec<u8> {
        fs::read(self.file("crt")).unwrap()
    }
}

/// Starts a server with a port for TLS beside its own. If another program takes that port first,
/// it tries another one.
fn server(certificate: &Certificate) -> (Server, String) {
    let (key, crt) = (certificate.file("key"), certificate.file("crt"));
    let mut errors = Vec::new();
    for _ in 0..20 {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port().to_string();
        drop(free);
        let settings = [
            ("tls-port", port.as_str()),
            ("tls-key-file", key.to_str().unwrap()),
            ("tls-cert-file", crt.to_str().unwrap()),
            ("tls-ca-cert-file", crt.to_str().unwrap()),
            ("tls-auth-clients", "no"),
        ];
        match cenote_servers::redis::start_with(&settings) {
            Ok(server) => return (server, format!("rediss://127.0.0.1:{port}")),
            Err(error) => errors.push(error),
        }
    }
    panic!("no server with TLS: {errors:?}");
}

#[tokio::test]
async fn a_trusted_server_is_used_by_tls() {
    let certificate = Certificate::new();
    let (_server, url) = server(&certificate);
    let pool: Builder = patient(&url).root_certificates(certificate.pem());
    let mut pool = pool.build().unwrap();

    let () = pool.set("k", "v").await.unwrap();
    let mut lease = pool.acquire().await.unwrap();
    let value: String = lease.get("k").await.unwrap();

    assert_eq!(value, "v");
}

#[tokio::test]
async fn a_server_that_is_not_trusted_is_denied() {
    let (certificate, other) = (Certificate::new(), Certificate::new());
    let (_server, url) = server(&certificate);
    let pool = patient(&url)
        .root_certificates(other.pem())
        .build()
        .unwrap();

    let error = pool.acquire().await.unwrap_err();

    let cenote::AcquireError::Open {
        error: cenote::OpenError::Failed(cause),
        ..
    } = &error
    else {
        panic!("{error}")
    };
    assert!(error.to_string().contains("certificate"), "{error}");
    assert_eq!(pool.pool().manager().classify(cause), ErrorClass::Denied);
}

#[tokio::test]
async fn a_server_without_tls_is_not_used_without_it() {
    let certificate = Certificate::new();
    let server = cenote_servers::redis::start().unwrap();
    let url = server.url().replace("redis://", "rediss://");
    let pool = patient(&url).root_certificates(certificate.pem());
    // The server waits for the rest of what it takes for a command.
    let pool = pool
        .open_timeout(std::time::Duration::from_millis(500))
        .build()
        .unwrap();

    assert!(pool.acquire().await.is_err());
}

#[test]
fn trust_needs_roots() {
    let error = Pool::from_url("rediss://localhost")
        .root_certificates("")
        .build()
        .unwrap_err();

    assert!(matches!(error, BuildError::Tls(_)), "{error}");
}
