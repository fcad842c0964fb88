//! PostgreSQL by cenote-postgres.

use std::str::FromStr;
use std::sync::Arc;

use cenote::Config;
use cenote_postgres::tokio_postgres::Config as Options;
use cenote_postgres::tokio_postgres::config::{Host, SslMode};
use cenote_postgres::{Lease, Pool};
use rustls::{ClientConfig, RootCertStore};

use super::{Places, Target, contact};
use crate::failure::{Failure, usage};

/// Builds a pool, and opens a first connection.
pub(crate) async fn open(url: &str, config: Config) -> Result<Pool, Failure> {
    let builder = Pool::with_options(options(url)?).rustls(tls()?);
    let pool = builder.config(config).cancel_on_server(false).build()?;
    contact(&Target::Postgres(url.to_owned()), &pool).await?;
    Ok(pool)
}

/// Reads a URL. On this machine, TLS is used only if the URL asks for it: servers have certificates
/// there that no root vouches for.
pub(crate) fn options(url: &str) -> Result<Options, Failure> {
    let mut options = Options::from_str(url)
        .map_err(|error| usage(format!("not a URL of PostgreSQL: {error}")))?;
    if !url.contains("sslmode=") && options.get_hosts().iter().all(is_here) {
        options.ssl_mode(SslMode::Disable);
    }
    options.application_name(our_name());
    Ok(options)
}

/// The server shows this name for the connections of this process.
pub(crate) fn our_name() -> String {
    format!("cenote-{}", std::process::id())
}

fn is_here(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

/// TLS with the root certificates of the system.
pub(crate) fn tls() -> Result<ClientConfig, Failure> {
    let mut roots = RootCertStore::empty();
    // A root that cannot be read vouches for no server. The connection says so if it is needed.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(tls.with_root_certificates(roots).with_no_client_auth())
}

/// Returns the places of the server for connections.
pub(crate) async fn places(lease: &Lease) -> Result<Places, Failure> {
    let all = setting(lease, "max_connections").await?;
    let superusers = setting(lease, "superuser_reserved_connections").await?;
    // Since PostgreSQL 16.
    let roles = setting(lease, "reserved_connections").await?;
    let others = lease
        .query_one(
            "select count(*) from pg_stat_activity \
             where backend_type = 'client backend' and application_name <> $1",
            &[&our_name()],
        )
        .await?;
    Ok(Places {
        all: number(all),
        reserved: number(superusers) + number(roles),
        others: others.try_get::<_, i64>(0)?.unsigned_abs(),
    })
}

/// Returns a setting of the session in its base unit, if the server has it.
pub(crate) async fn setting(lease: &Lease, name: &str) -> Result<Option<String>, Failure> {
    let sql = "select setting from pg_settings where name = $1";
    let row = lease.query_opt(sql, &[&name]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

fn number(setting: Option<String>) -> u64 {
    setting.and_then(|text| text.parse().ok()).unwrap_or(0)
}
