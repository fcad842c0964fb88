//! `cenote tune`: what `max_size` should be.
//!
//! The sizes are tried on the real server, each by callers that always wait. The knee is the least
//! size that reaches nearly the best throughput. More connections only make each other slower.

mod advice;
mod client;
mod sweep;
mod usl;

use std::sync::Arc;
use std::time::Duration;

use cenote::Config;

use crate::args::TuneArgs;
use crate::failure::{Failure, Verdict};
use crate::out;
use crate::service::Service;
use crate::target::Target;

use advice::Advice;
use sweep::Sweep;

pub(crate) use sweep::Point;
pub(crate) use usl::Usl;

pub(crate) async fn run(args: &TuneArgs) -> Result<Verdict, Failure> {
    let target = Target::parse(&args.url)?;
    let config = Config {
        name: Some("tune".to_owned()),
        max_size: 1,
        ..Config::default()
    };
    let service = Arc::new(Service::open(&target, config, &args.sql, args.simple).await?);
    // One statement tells whether all of them are refused.
    service.run().await?;
    let places = service.places().await;
    let most = args.max_size as usize;
    // The server must stay open for others while the sizes are tried.
    let free = places.map_or(most, |places| {
        usize::try_from(places.left()).unwrap_or(most)
    });
    let step = Duration::from_millis(args.step_ms);
    let sweep = Sweep::run(&service, most.min(free.max(1)), step).await?;
    service.close().await;

    let advice = Advice::new(target.shown(), &sweep, places, args.instances);
    if args.json {
        out::print_json(&advice)?;
    } else {
        out::print(&advice.to_text())?;
    }
    Ok(Verdict::Fine)
}
