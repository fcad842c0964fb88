//! A fleet that is kept in PostgreSQL.

use cenote::Config;
use cenote_fleet::{Fleet, Postgres};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::view::Reader;
use crate::failure::Failure;
use crate::target::postgres::{open, options, tls};

pub(super) async fn reader(
    url: &str,
    group: &str,
) -> Result<Reader<Postgres<MakeRustlsConnect>>, Failure> {
    // It says best why there is no connection.
    drop(open(url, Config::default()).await?);
    let tls = MakeRustlsConnect::new(tls()?);
    Reader::new(Fleet::postgres_tls(&options(url)?, group, tls), group)
}
