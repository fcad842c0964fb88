//! TLS that is required is used on every connection, or the open fails.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use cenote_servers::Server;
use cenote_sqlx::{Builder, Credentials, Db, Dialect};
use sqlx::{MySql, Postgres};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

/// A self-signed certificate for `127.0.0.1`, and its key. Every user may read the key, which
/// guards nothing.
struct Certificate {
    folder: TempDir,
}

impl Certificate {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let certificate = Self { folder };
        let made = Command::new("openssl")
            .args("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=cenote".split(' '))
            .args("-addext subjectAltName=IP:127.0.0.1".split(' '))
            .args("-addext basicConstraints=critical,CA:FALSE".split(' '))
            .args([Path::new("-keyout"), &certificate.file("key")])
            .args([Path::new("-out"), &certificate.file("crt")])
            .output();
        let made = made.expect("`openssl` must be installed: it makes the certificate");
        assert!(made.status.success(), "{made:?}");
        certificate.allow(certificate.folder.path(), 0o755);
        certificate.allow(&certificate.file("key"), 0o644);
        certificate
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn allow(&self, path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Copies it into the data folder of PostgreSQL, readable for the server only.
    fn install(&self, server: &Server) {
        let data = server.folder().join("data");
        let owner = fs::metadata(&data).unwrap();
        for (name, to) in [("key", "server.key"), ("crt", "server.crt")] {
            let to = data.join(to);
            fs::copy(self.file(name), &to).unwrap();
            self.allow(&to, 0o600);
            chown(&to, Some(owner.uid()), Some(owner.gid())).unwrap();
        }
    }
}

fn postgres(server: &Server, options: &str) -> Db<Postgres> {
    let builder = Db::postgres(format!("{}?{options}", server.url()));
    pool(builder)
}

fn mysql(server: &Server, options: &str) -> Db<MySql> {
    let builder = Db::mysql(format!("{}/mysql?{options}", server.url()));
    pool(builder)
}

fn pool<DB: Dialect>(builder: Builder<DB>) -> Db<DB> {
    let builder = builder.max_size(3).acquire_timeout(Duration::from_secs(10));
    builder.build().unwrap()
}

/// Switches TLS on or off for new connections.
async fn set_tls(server: &Server, tls: &str) {
    let db = postgres(server, "sslmode=disable");
    let set = format!("ALTER SYSTEM SET ssl = {tls}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(set))
        .execute(&db)
        .await
        .unwrap();
    sqlx::raw_sql("SELECT pg_reload_conf()")
        .execute(&db)
        .await
        .unwrap();
    let changed = timeout(Duration::from_secs(20), async {
        loop {
            // A session shows the setting of the time when it began.
            db.pool().invalidate();
            let now: String = sqlx::query_scalar("SHOW ssl").fetch_one(&db).await.unwrap();
            if now == tls {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
    });
    changed.await.expect("the server takes the setting");
}

async fn private_postgres() -> (Server, Certificate) {
    let certificate = Certificate::new();
    let server = cenote_servers::postgres::start().unwrap();
    certificate.install(&server);
    set_tls(&server, "on").await;
    (server, certificate)
}

const ENCRYPTED: &str = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";

async fn assert_encrypted(db: &Db<Postgres>) {
    let mut all = Vec::new();
    for _ in 0..3 {
        let mut lease = db.acquire().await.unwrap();
        let encrypted: bool = sqlx::query_scalar(ENCRYPTED)
            .fetch_one(&mut lease)
            .await
            .unwrap();
        assert!(encrypted, "a connection without TLS");
        all.push(lease);
    }
}

/// Returns the error of an open, which must fail.
async fn refusal<DB: Dialect>(db: &Db<DB>) -> String {
    let error = db.acquire().await.unwrap_err();
    let seen = db.pool().status();
    assert_eq!((seen.opened, seen.in_use, seen.waiting), (0, 0, 0));
    error.to_string()
}

#[tokio::test]
async fn required_tls_is_used_on_every_connection_to_postgresql() {
    let (server, _certificate) = private_postgres().await;
    assert_encrypted(&postgres(&server, "sslmode=require")).await;
    let url = format!("{}?sslmode=require", server.url());
    let asked = Db::postgres(url)
        .credentials(async || Ok::<_, std::io::Error>(Credentials::new("postgres", "any")));
    assert_encrypted(&pool(asked)).await;

    let db = postgres(&server, "sslmode=require");
    let before = db.acquire().await.unwrap();
    set_tls(&server, "off").await;

    let error = db.acquire().await.unwrap_err().to_string();
    assert!(error.contains("server does not support TLS"), "{error}");
    drop(before);
    sqlx::query("SELECT 1").execute(&db).await.unwrap();
}

#[tokio::test]
async fn an_unknown_certificate_is_refused_where_certificates_are_verified() {
    let (server, certificate) = private_postgres().await;
    let known = certificate.file("crt");
    let stranger = Certificate::new();
    let trust = |file: &Path| format!("sslmode=verify-full&sslrootcert={}", file.display());

    for options in [
        "sslmode=verify-full".to_owned(),
        trust(&stranger.file("crt")),
    ] {
        let error = refusal(&postgres(&server, &options)).await;
        assert!(error.contains("certificate"), "{error}");
    }

    assert_encrypted(&postgres(&server, &trust(&known))).await;
}

#[tokio::test]
async fn required_tls_is_used_on_every_connection_to_mariadb() {
    let certificate = Certificate::new();
    let (key, crt) = (certificate.file("key"), certificate.file("crt"));
    let settings = [
        ("ssl-key", &*key.to_string_lossy()),
        ("ssl-cert", &*crt.to_string_lossy()),
    ];
    let server = cenote_servers::mariadb::start_with(&settings).unwrap();
    let db = mysql(&server, "ssl-mode=REQUIRED");

    let mut all = Vec::new();
    for _ in 0..3 {
        let mut lease = db.acquire().await.unwrap();
        let cipher = "SELECT variable_value FROM information_schema.session_status WHERE variable_name = 'Ssl_cipher'";
        let cipher: String = sqlx::query_scalar(cipher)
            .fetch_one(&mut lease)
            .await
            .unwrap();
        assert!(!cipher.is_empty(), "a connection without TLS");
        all.push(lease);
    }

    let stranger = refusal(&mysql(&server, "ssl-mode=VERIFY_IDENTITY")).await;
    assert!(stranger.contains("certificate"), "{stranger}");
}

#[tokio::test]
async fn required_tls_fails_on_a_server_without_it() {
    let plain = cenote_servers::postgres::start().unwrap();
    let error = refusal(&postgres(&plain, "sslmode=require")).await;
    assert!(error.contains("server does not support TLS"), "{error}");

    let plain = cenote_servers::mariadb::start().unwrap();
    let error = refusal(&mysql(&plain, "ssl-mode=REQUIRED")).await;
    assert!(error.contains("server does not support TLS"), "{error}");
}
