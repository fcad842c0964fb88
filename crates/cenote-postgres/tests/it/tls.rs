//! TLS that is required is used on every connection, or the open fails.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use cenote_postgres::{Pool, rustls};
use cenote_servers::Server;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;

use crate::{Admin, LIMIT, backend, eventually};

/// A self-signed certificate for `127.0.0.1`, and its key.
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
        certificate
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Copies it into the data folder of the server, readable for the server only.
    fn install(&self, server: &Server) {
        let data = server.folder().join("data");
        let owner = fs::metadata(&data).unwrap();
        for (name, to) in [("key", "server.key"), ("crt", "server.crt")] {
            let to = data.join(to);
            fs::copy(self.file(name), &to).unwrap();
            fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).unwrap();
            chown(&to, Some(owner.uid()), Some(owner.gid())).unwrap();
        }
    }

    /// Returns the settings of a client that trusts this certificate.
    fn trusted(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(self.file("crt")).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth()
    }
}

/// Starts a server that accepts TLS.
async fn start() -> (Server, Certificate) {
    let certificate = Certificate::new();
    let server = cenote_servers::postgres::start().unwrap();
    certificate.install(&server);
    let admin = Admin::at(server.url()).await;
    admin
        .0
        .batch_execute("alter system set ssl = on")
        .await
        .unwrap();
    admin
        .0
        .batch_execute("select pg_reload_conf()")
        .await
        .unwrap();
    // A session shows the setting of the time when it began.
    eventually("TLS is on", async || {
        let admin = Admin::at(server.url()).await;
        admin
            .count("select count(*) from pg_settings where name = 'ssl' and setting = 'on'")
            .await
            == 1
    })
    .await;
    (server, certificate)
}

fn pool(server: &Server, mode: &str, tls: Option<ClientConfig>) -> Pool {
    let builder = Pool::from_url(format!("{}?sslmode={mode}", server.url()));
    let builder = builder
        .max_size(3)
        .acquire_timeout(LIMIT)
        .open_timeout(LIMIT);
    match tls {
        Some(tls) => builder.rustls(tls).build().unwrap(),
        None => builder.build().unwrap(),
    }
}

async fn is_encrypted(pool: &Pool) -> bool {
    let sql = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
    pool.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn tls_is_used_where_it_is_asked_for() {
    let (server, certificate) = start().await;

    for (mode, encrypted) in [("require", true), ("prefer", true), ("disable", false)] {
        let pool = pool(&server, mode, Some(certificate.trusted()));
        assert_eq!(is_encrypted(&pool).await, encrypted, "{mode}");
    }
    assert!(!is_encrypted(&pool(&server, "prefer", None)).await);
}

#[tokio::test]
async fn a_dropped_statement_is_cancelled_over_tls() {
    let (server, certificate) = start().await;
    let admin = Admin::at(server.url()).await;
    let pool = pool(&server, "require", Some(certificate.trusted()));
    let lease = pool.acquire().await.unwrap();
    let before = backend(&lease).await;
    tokio::select! {
        ended = lease.query("select pg_sleep(600) /* cenote_pg_tls */", &[]) => {
            panic!("it ended: {ended:?}")
        }
        () = admin.until_running("cenote_pg_tls", true) => {}
    }

    drop(lease);

    eventually("it is back", async || pool.status().idle == 1).await;
    assert_eq!(backend(&pool.acquire().await.unwrap()).await, before);
    admin.until_running("cenote_pg_tls", false).await;
}

#[tokio::test]
async fn required_tls_that_cannot_be_had_fails_the_open() {
    let (server, _) = start().await;
    let stranger = pool(&server, "require", Some(Certificate::new().trusted()));
    let error = stranger.acquire().await.unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");
    let without = pool(&server, "require", None);
    let error = without.acquire().await.unwrap_err().to_string();
    assert!(error.contains("TLS"), "{error}");

    let plain = cenote_servers::postgres::start().unwrap();
    let required = pool(&plain, "require", Some(Certificate::new().trusted()));
    let error = required.acquire().await.unwrap_err().to_string();
    assert!(error.contains("TLS"), "{error}");
    for pool in [stranger, without, required] {
        assert_eq!(pool.status().opened, 0);
    }
}
