//! The URL: the driver parses it, and options that this pool would not respect are refused.

use mysql_async::{Opts, OptsBuilder, PoolOpts};

use crate::build_error::BuildError;

/// Options for the driver's own pool, and the settings of this pool that have their meaning.
const FOR_THE_POOL: [(&str, &str); 8] = [
    ("pool_min", "min_size"),
    ("pool_max", "max_size"),
    ("inactive_connection_ttl", "idle_timeout"),
    ("ttl_check_interval", "upkeep_interval"),
    ("conn_ttl", "idle_timeout"),
    ("abs_conn_ttl", "max_lifetime"),
    ("abs_conn_ttl_jitter", "lifetime_jitter"),
    ("reset_connection", "reset"),
];

/// Parses a URL. Unless the URL says otherwise, the driver does not change from TCP to a socket of
/// the same machine: it would open two connections for each.
pub(crate) fn parse(url: &str) -> Result<Opts, BuildError> {
    let (_, query) = url.split_once('?').unwrap_or_default();
    let names = || query.split('&').filter_map(|pair| pair.split('=').next());
    for (option, instead) in FOR_THE_POOL {
        if names().any(|name| name == option) {
            let option = option.to_owned();
            return Err(BuildError::PoolOption { option, instead });
        }
    }
    let options = Opts::from_url(url).map_err(BuildError::Url)?;
    if names().any(|name| name == "prefer_socket") {
        return Ok(options);
    }
    let options = OptsBuilder::from_opts(options).prefer_socket(false);
    Ok(options.into())
}

/// Refuses options of the driver that this pool would not respect.
pub(crate) fn examine(options: &Opts) -> Result<(), BuildError> {
    if *options.pool_opts() != PoolOpts::default() {
        let option = "pool_opts".to_owned();
        let instead = "config";
        return Err(BuildError::PoolOption { option, instead });
    }
    if options.ssl_opts().is_some() && !cfg!(feature = "rustls") {
        return Err(BuildError::NoTls);
    }
    Ok(())
}
