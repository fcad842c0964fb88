//! `cenote top`: the pools of a running service, by the JSON of its live page.

mod data;
mod http;
#[cfg(feature = "top")]
pub(crate) mod screen;

use std::io::{self, IsTerminal};

use crate::args::TopArgs;
use crate::failure::{Failure, Verdict};
use crate::out;

pub(crate) use data::{Overview, PoolRow};
pub(crate) use http::Site;

pub(crate) async fn run(args: &TopArgs) -> Result<Verdict, Failure> {
    let site = Site::parse(&args.url)?;
    let overview: Overview = site.read("api/pools").await?;
    if args.json {
        out::print_json(&overview.pools)?;
    } else if args.once || !io::stdout().is_terminal() {
        out::print(&overview.to_text())?;
    } else {
        live(&site, overview).await?;
    }
    Ok(Verdict::Fine)
}

#[cfg(feature = "top")]
async fn live(site: &Site, overview: Overview) -> Result<(), Failure> {
    screen::run(site, overview).await
}

#[cfg(not(feature = "top"))]
async fn live(_: &Site, _: Overview) -> Result<(), Failure> {
    Err(crate::failure::usage(
        "the full-screen view is not built in: build with `--features top` or `--features full`, or \
         use `--once`",
    ))
}
