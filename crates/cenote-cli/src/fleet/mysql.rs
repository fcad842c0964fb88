//! A fleet that is kept in MySQL or MariaDB.

use cenote::Config;
use cenote_fleet::{Fleet, Mysql};

use super::view::Reader;
use crate::failure::Failure;
use crate::target::mysql::{open, options};

pub(super) async fn reader(url: &str, group: &str) -> Result<Reader<Mysql>, Failure> {
    // It says best why there is no connection.
    drop(open(url, Config::default()).await?);
    Reader::new(Fleet::mysql(&options(url)?, group), group)
}
