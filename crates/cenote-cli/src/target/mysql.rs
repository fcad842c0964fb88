//! MySQL and MariaDB by cenote-mysql.

use std::env;
use std::path::PathBuf;

use cenote::Config;
use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_mysql::mysql_async::{Opts, OptsBuilder, SslOpts};
use cenote_mysql::{Lease, Pool};

use super::{Places, Target, contact};
use crate::failure::{Failure, usage};

/// Builds a pool, and opens a first connection.
pub(crate) async fn open(url: &str, config: Config) -> Result<Pool, Failure> {
    let mut builder = Pool::from_url(url).config(config);
    if let Some(tls) = own_root(url) {
        builder = builder.tls(tls);
    }
    let pool = builder.build().map_err(|error| usage(error.to_string()))?;
    contact(&Target::Mysql(url.to_owned()), &pool).await?;
    Ok(pool)
}

/// Reads a URL.
pub(crate) fn options(url: &str) -> Result<Opts, Failure> {
    let options = Opts::from_url(url);
    let options = options.map_err(|error| usage(format!("not a URL of MySQL: {error}")))?;
    let tls = own_root(url).or(options.ssl_opts().cloned());
    Ok(OptsBuilder::from_opts(options).ssl_opts(tls).into())
}

/// Returns the settings for TLS if the URL asks for it and `SSL_CERT_FILE` names a root. The driver
/// knows public roots only.
fn own_root(url: &str) -> Option<SslOpts> {
    let options = Opts::from_url(url).ok()?;
    let tls = options.ssl_opts()?.clone();
    let root = PathBuf::from(env::var_os("SSL_CERT_FILE")?);
    Some(tls.with_root_certs(vec![root.into()]))
}

/// Returns the places of the server for connections.
pub(crate) async fn places(lease: &mut Lease, ours: u64) -> Result<Places, Failure> {
    let all = variable(lease, "max_connections")
        .await?
        .unwrap_or_default();
    let connected: Option<(String, String)> = lease
        .query_first("SHOW GLOBAL STATUS LIKE 'Threads_connected'")
        .await?;
    let connected = connected.map_or(0, |(_, text)| text.parse().unwrap_or(0));
    Ok(Places {
        all: all.parse().unwrap_or(0),
        // The place for an administrator is beside `max_connections`.
        reserved: 0,
        others: u64::saturating_sub(connected, ours),
    })
}

/// Returns a variable of the session, or the global one, if the server has it.
pub(crate) async fn variable(lease: &mut Lease, name: &str) -> Result<Option<String>, Failure> {
    let row: Option<(String, String)> = lease
        .exec_first("SHOW VARIABLES WHERE Variable_name = ?", (name,))
        .await?;
    Ok(row.map(|(_, value)| value))
}
