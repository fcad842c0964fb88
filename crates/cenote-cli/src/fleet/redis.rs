//! A fleet that is kept in Redis.

use cenote::Config;
use cenote_fleet::{Fleet, Redis};
use cenote_redis::redis::Client;

use super::view::Reader;
use crate::failure::Failure;
use crate::target::redis::open;

pub(super) async fn reader(url: &str, group: &str) -> Result<Reader<Redis>, Failure> {
    // It says best why there is no connection.
    drop(open(url, Config::default()).await?);
    Reader::new(Fleet::redis(&Client::open(url)?, group), group)
}
