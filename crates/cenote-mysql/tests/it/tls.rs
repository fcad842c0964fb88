//! TLS that is asked for is used on every connection, or the open fails.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cenote_mysql::mysql_async::SslOpts;
use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_mysql::{Class, Pool};
use cenote_servers::Server;
use tempfile::TempDir;

/// A self-signed certificate for `127.0.0.1`, and its key. Every user may read the key, which
/// guards nothing.
struct Certificate(TempDir);

impl Certificate {
    fn new() -> Self {
        let made = Self(tempfile::tempdir().unwrap());
        let output = Command::new("openssl")
            .args("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=cenote".split(' '))
            .args("-addext subjectAltName=IP:127.0.0.1".split(' '))
            .args("-addext basicConstraints=critical,CA:FALSE".split(' '))
            .args([Path::new("-keyout"), &made.file("key")])
            .args([Path::new("-out"), &made.file("crt")])
            .output();
        let output = output.expect("`openssl` must be installed: it makes the certificate");
        assert!(output.status.success(), "{output:?}");
        for (path, mode) in [(made.0.path().to_owned(), 0o755), (made.file("key"), 0o644)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        made
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The options of a client that trusts this certificate only.
    fn trust(&self) -> SslOpts {
        let tls = SslOpts::default().with_disable_built_in_roots(true);
        tls.with_root_certs(vec![self.file("crt").into()])
    }
}

fn start() -> (Server, Certificate) {
    let certificate = Certificate::new();
    let (key, crt) = (certificate.file("key"), certificate.file("crt"));
    let settings = [
        ("ssl-key", key.to_str().unwrap()),
        ("ssl-cert", crt.to_str().unwrap()),
    ];
    let server = cenote_servers::mariadb::start_with(&settings).unwrap();
    (server, certificate)
}

const CIPHER: &str = "SHOW STATUS LIKE 'Ssl_cipher'";

#[tokio::test]
async fn every_connection_is_encrypted_also_after_a_reset() {
    let (server, certificate) = start();
    let pool = Pool::from_url(server.url()).tls(certificate.trust());
    let pool = pool.max_size(3).build().unwrap();

    for _ in 0..2 {
        let mut all = Vec::new();
        for _ in 0..3 {
            let mut lease = pool.acquire().await.unwrap();
            let cipher: (String, String) = lease.query_first(CIPHER).await.unwrap().unwrap();
            assert!(!cipher.1.is_empty(), "a connection without TLS");
            all.push(lease);
        }
    }
}

#[tokio::test]
async fn a_dropped_statement_is_killed_over_tls() {
    let (server, certificate) = start();
    let pool = Pool::from_url(server.url()).tls(certificate.trust());
    let pool = pool.max_size(1).build().unwrap();
    crate::rig::grown_up(server.url()).await;
    let mut admin = crate::rig::admin(server.url()).await;
    let running = "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
                   WHERE INFO = 'SELECT SLEEP(1000)'";
    let inner = pool.clone();
    let asleep = tokio::spawn(async move { inner.query_drop("SELECT SLEEP(1000)").await });
    crate::eventually("it runs", async || {
        admin.query_first::<u8, _>(running).await.unwrap() == Some(1)
    })
    .await;

    asleep.abort();

    crate::eventually("it stops", async || {
        admin.query_first::<u8, _>(running).await.unwrap() == Some(0)
    })
    .await;
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_fails_the_open() {
    let (server, certificate) = start();
    let other = Certificate::new();
    let refuse = Pool::from_url(server.url())
        .tls(other.trust())
        .build()
        .unwrap();
    let public = format!("{}?require_ssl=true", server.url());
    let public = Pool::from_url(public).build().unwrap();
    let named = certificate
        .trust()
        .with_danger_tls_hostname_override(Some("elsewhere"));
    let named = Pool::from_url(server.url()).tls(named).build().unwrap();

    for pool in [refuse, public, named] {
        let error = pool.acquire().await.unwrap_err();
        assert!(error.to_string().contains("certificate"), "{error}");
    }
}

#[tokio::test]
async fn tls_that_the_server_does_not_have_fails_the_open() {
    let server = cenote_servers::mariadb::start().unwrap();
    let pool = Pool::from_url(format!("{}?require_ssl=true", server.url()));
    let pool = pool.build().unwrap();

    let error = pool.acquire().await.unwrap_err();

    assert_eq!(error.class(), Class::Denied, "{error}");
}
