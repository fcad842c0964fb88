//! A fleet that is kept in PostgreSQL.

use std::collections::BTreeMap;
use std::time::Duration;

use cenote::Config;
use cenote_fleet::protocol::{Cell, Epoch, MemberId};
use cenote_postgres::tokio_postgres::error::SqlState;
use cenote_postgres::{Lease, Pool};

use super::data::{Fleet, Sessions};
use crate::failure::{Failure, usage};
use crate::target::postgres::open_as;

/// The server shows this name for the reader. It has no tag, so no member counts it.
const NAME: &str = "cenote fleet reader";

/// A read takes one round trip. A server that is busy for longer is told as trouble.
const LIMIT: Duration = Duration::from_secs(5);

/// Every session of a member has its tag at the end of its name: `cn:`, the group, `:` and the
/// member in 16 digits.
const SESSIONS: &str = "select application_name, count(*) from pg_stat_activity \
     where strpos(application_name, $1) > 0 and backend_type = 'client backend' group by 1";

pub(super) struct Reader {
    pool: Pool,
    group: String,
}

impl Reader {
    pub(super) async fn open(url: &str, group: &str) -> Result<Self, Failure> {
        let config = Config {
            max_size: 1,
            acquire_timeout: Some(LIMIT),
            ..Config::default()
        };
        Ok(Self {
            pool: open_as(url, config, NAME).await?,
            group: group.to_owned(),
        })
    }

    pub(super) async fn read(&self) -> Result<Fleet, Failure> {
        let lease = self.pool.acquire().await?;
        let cell = self.cell(&lease).await?;
        let counts = self.sessions(&lease).await?;
        Ok(Fleet::new(&self.group, &cell, &counts))
    }

    async fn cell(&self, lease: &Lease) -> Result<Cell, Failure> {
        let group = &self.group;
        let sql = "select cell from cenote_fleet where name = $1";
        let row = lease.query_opt(sql, &[group]).await;
        let row = match row {
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
                return Err(
                    "this database keeps no fleet, because it has no table `cenote_fleet`: check \
                     the database in the URL"
                        .into(),
                );
            }
            row => row?,
        };
        let Some(row) = row else {
            return Err(unknown(group, lease).await?);
        };
        let bytes: Vec<u8> = row.try_get(0)?;
        if bytes.is_empty() {
            // No member has joined yet.
            let epoch = Epoch {
                origin: 0,
                nonce: 0,
            };
            return Ok(Cell::new(epoch));
        }
        Ok(Cell::decode(&bytes)?)
    }

    async fn sessions(&self, lease: &Lease) -> Result<BTreeMap<MemberId, Sessions>, Failure> {
        let tag = format!("cn:{}:", self.group);
        let mut counts: BTreeMap<MemberId, Sessions> = BTreeMap::new();
        for row in lease.query(SESSIONS, &[&tag]).await? {
            let (text, count): (&str, i64) = (row.try_get(0)?, row.try_get(1)?);
            let parts = text.rsplit_once(&*tag);
            let member = parts.and_then(|(_, id)| u64::from_str_radix(id, 16).ok());
            let (Some((name, _)), Some(member)) = (parts, member) else {
                continue;
            };
            let sessions = counts.entry(MemberId(member)).or_default();
            sessions.count += count.unsigned_abs();
            let name = name.trim_end();
            if !name.is_empty() {
                sessions.name = Some(name.to_owned());
            }
        }
        Ok(counts)
    }
}

/// Says that there is no such group, and which there are.
async fn unknown(group: &str, lease: &Lease) -> Result<Failure, Failure> {
    let sql = "select coalesce(string_agg(name, ', ' order by name), 'none') from cenote_fleet";
    let row = lease.query_one(sql, &[]).await?;
    let known: &str = row.try_get(0)?;
    Ok(usage(format!(
        "no group `{group}` in this database: its groups are {known}"
    )))
}
