//! `cenote fleet`: the members of a fleet, their shares and wishes, read without joining.

#[cfg(feature = "postgres")]
mod data;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(all(feature = "postgres", feature = "top"))]
mod screen;
#[cfg(feature = "postgres")]
mod watch;

use crate::args::FleetArgs;
use crate::failure::{Failure, Verdict, usage};
use crate::target::Target;

/// Each engine that the program can read has an arm here, and a reader of its own.
pub(crate) async fn run(args: &FleetArgs) -> Result<Verdict, Failure> {
    match Target::parse(&args.url)? {
        #[cfg(feature = "postgres")]
        Target::Postgres(url) => {
            let reader = postgres::Reader::open(&url, &args.group).await?;
            watch::run(args, reader).await?;
            Ok(Verdict::Fine)
        }
        other => Err(usage(format!(
            "no fleet can be read from `{}`: use the `postgres://` URL of the database that keeps it",
            other.shown()
        ))),
    }
}
