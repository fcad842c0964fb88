//! Redis by cenote-redis.

use cenote::Config;
use cenote_redis::redis;
use cenote_redis::{Lease, Pool};

use super::{Places, Target, contact};
use crate::failure::{Failure, usage};

/// Builds a pool without lanes, and opens a first connection.
pub(crate) async fn open(url: &str, config: Config) -> Result<Pool, Failure> {
    let builder = Pool::from_url(url).config(config).mux(0);
    let pool = builder.build().map_err(|error| usage(error.to_string()))?;
    contact(&Target::Redis(url.to_owned()), pool.pool()).await?;
    Ok(pool)
}

/// Returns the places of the server for connections.
pub(crate) async fn places(lease: &mut Lease, ours: u64) -> Result<Places, Failure> {
    let info: String = redis::cmd("INFO").arg("clients").query_async(lease).await?;
    let field = |name: &str| {
        let value = info
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.and_then(|value| value.trim().parse::<u64>().ok())
    };
    Ok(Places {
        all: field("maxclients").unwrap_or(0),
        reserved: 0,
        others: field("connected_clients").unwrap_or(0).saturating_sub(ours),
    })
}
