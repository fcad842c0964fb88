//! The control connections use TLS: as the pool does, or as the client of the engine does.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::sync::Arc;

use ::redis::{Client, TlsCertificates};
use cenote_fleet::Fleet;
use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_mysql::mysql_async::{Opts, OptsBuilder, SslOpts};
use cenote_servers::{Certificate, Server, mariadb, nats, postgres, redis};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::SslMode;
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::live::LIMIT;
use crate::model::Model;
use crate::mysql::Database;

/// Starts a PostgreSQL server that accepts TLS.
async fn start_postgres(certificate: &Certificate) -> Server {
    let mut server = postgres::start().unwrap();
    let data = server.folder().join("data");
    let owner = fs::metadata(&data).unwrap();
    for (from, name) in [
        (&certificate.key, "server.key"),
        (&certificate.crt, "server.crt"),
    ] {
        let to = data.join(name);
        fs::copy(from, &to).unwrap();
        // The server refuses a key that others may read.
        fs::set_permissions(&to, Permissions::from_mode(0o600)).unwrap();
        chown(&to, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    let (admin, connection) = tokio_postgres::connect(server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let sql = "alter system set ssl = on";
    admin.batch_execute(sql).await.unwrap();
    server.restart().unwrap();
    server
}

/// A client that trusts this certificate only.
fn trust(certificate: &Certificate) -> MakeRustlsConnect {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_file(&certificate.crt).unwrap();
    roots.add(root).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let client = client.with_root_certificates(roots);
    MakeRustlsConnect::new(client.with_no_client_auth())
}

#[tokio::test]
async fn all_sessions_of_a_member_at_postgres_are_encrypted() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = Certificate::make(folder.path()).unwrap();
    let (server, tls) = (start_postgres(&certificate).await, trust(&certificate));
    let mut options: Config = server.url().parse().unwrap();
    options.ssl_mode(SslMode::Require);
    let joining = Fleet::postgres_tls(&options, "orders", tls.clone()).unwrap();
    let mut of_pool = options.clone();
    of_pool.application_name(joining.tag("api"));
    let pool = cenote_postgres::Pool::with_options(of_pool).tls(tls);
    let pool = pool.acquire_timeout(LIMIT).build().unwrap();

    let _fleet = joining.capacity(10).join(&pool).await.unwrap();

    let lease = pool.acquire().await.unwrap();
    let sql = "select count(*) from pg_stat_activity join pg_stat_ssl using (pid) \
         where application_name like '%cn:orders:%' and ssl";
    let encrypted: i64 = lease.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(encrypted, 2, "the control connection and the lease");
    let without = Fleet::postgres(&options, "orders").unwrap();
    let refused = without.capacity(10).join(&pool).await.unwrap_err();
    let said = refused.to_string();
    assert!(said.contains("TLS"), "{said}");
}

#[tokio::test]
async fn all_sessions_of_a_member_at_mariadb_are_encrypted() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = Certificate::make(folder.path()).unwrap();
    let settings = [
        ("ssl-key", certificate.key.to_str().unwrap()),
        ("ssl-cert", certificate.crt.to_str().unwrap()),
    ];
    let server = mariadb::start_with(&settings).unwrap();
    let database = Database::at(server.url()).await;
    database.run("ALTER USER app@'%' REQUIRE SSL").await;
    let tls = SslOpts::default().with_disable_built_in_roots(true);
    let tls = tls.with_root_certs(vec![certificate.crt.clone().into()]);
    let plain = database.options.clone();
    let options: Opts = OptsBuilder::from_opts(plain.clone()).ssl_opts(tls).into();
    let joining = Fleet::mysql(&options, "orders").unwrap();
    let pool = cenote_mysql::Pool::with_options(joining.tagged(&options));
    let pool = pool.acquire_timeout(LIMIT).build().unwrap();

    let _fleet = joining.capacity(10).join(&pool).await.unwrap();

    let mut lease = pool.acquire().await.unwrap();
    let cipher: Option<(String, String)> = lease
        .query_first("SHOW STATUS LIKE 'Ssl_cipher'")
        .await
        .unwrap();
    assert!(!cipher.unwrap().1.is_empty());
    let without = Fleet::mysql(&plain, "orders").unwrap();
    let refused = without.capacity(10).join(&pool).await.unwrap_err();
    let said = refused.to_string();
    assert!(said.contains("Access denied"), "{said}");
}

#[tokio::test]
async fn both_connections_of_a_member_to_redis_are_encrypted() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = Certificate::make(folder.path()).unwrap();
    let (server, url) = redis::start_with_tls(&certificate).unwrap();
    let roots = TlsCertificates {
        client_tls: None,
        root_cert: Some(fs::read(&certificate.crt).unwrap()),
    };
    let client = Client::build_with_tls(url.as_str(), roots).unwrap();
    let joining = Fleet::redis(&client, "orders").unwrap();
    let pool = Model::default().pool(joining.id());

    let fleet = joining.capacity(10).join(&pool).await.unwrap();

    assert!(fleet.status().last_error.is_none(), "{:?}", fleet.status());
    let plain = Client::open(server.url()).unwrap();
    let mut plain = plain.get_multiplexed_async_connection().await.unwrap();
    let mut list = ::redis::cmd("CLIENT");
    let clients: String = list.arg("LIST").query_async(&mut plain).await.unwrap();
    let at_tls_port = format!(" laddr={} ", url.trim_start_matches("rediss://"));
    let encrypted = clients.lines().filter(|line| line.contains(&at_tls_port));
    assert_eq!(encrypted.count(), 2, "{clients}");
}

#[tokio::test]
async fn a_member_joins_by_a_client_of_nats_that_uses_tls() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = Certificate::make(folder.path()).unwrap();
    let settings = [
        ("tls", "true"),
        ("tlskey", certificate.key.to_str().unwrap()),
        ("tlscert", certificate.crt.to_str().unwrap()),
    ];
    let server = nats::start_with(&settings).unwrap();
    let trusting = async_nats::ConnectOptions::new()
        .require_tls(true)
        .add_root_certificates(certificate.crt.clone());
    let client = trusting.connect(server.url()).await.unwrap();
    let context = async_nats::jetstream::new(client);
    let joining = Fleet::nats(&context, "orders").unwrap();
    let pool = Model::default().pool(joining.id());

    let fleet = joining.capacity(10).join(&pool).await.unwrap();

    assert_eq!(fleet.status().members.len(), 1);
    let refused = async_nats::connect(server.url()).await;
    assert!(refused.is_err(), "the server speaks TLS only");
}
