//! `cenote fleet`: the members of a fleet, their shares and wishes, read without joining.

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(
    feature = "mysql",
    feature = "nats",
    feature = "postgres",
    feature = "redis"
))]
mod view;

use crate::args::FleetArgs;
use crate::failure::{Failure, Verdict, usage};
use crate::target::Target;

/// Each engine that the program can read has an arm here.
pub(crate) async fn run(args: &FleetArgs) -> Result<Verdict, Failure> {
    let url = &*args.url;
    if url.starts_with("nats://") || url.starts_with("tls://") {
        #[cfg(not(feature = "nats"))]
        return Err(crate::target::not_built_in("nats", "NATS"));
        #[cfg(feature = "nats")]
        return view::run(args, nats::reader(url, &args.group).await?).await;
    }
    match Target::parse(url)? {
        #[cfg(feature = "postgres")]
        Target::Postgres(url) => view::run(args, postgres::reader(&url, &args.group).await?).await,
        #[cfg(feature = "mysql")]
        Target::Mysql(url) => view::run(args, mysql::reader(&url, &args.group).await?).await,
        #[cfg(feature = "redis")]
        Target::Redis(url) => view::run(args, redis::reader(&url, &args.group).await?).await,
        Target::Sqlite(path) => Err(usage(format!(
            "no fleet can be read from `{path}`: use the URL of the server that keeps it \
             (`postgres://`, `mysql://`, `redis://` or `nats://`)"
        ))),
    }
}
