//! The pool of a member, on the drivers of two databases, and how it joins by each engine.

use std::fmt::Debug;
use std::time::Duration;

use cenote::config::OnOpenError;
use cenote_fleet::{Fleet, JoinError};
use cenote_mysql::Reset;
use cenote_mysql::mysql_async::Opts;
use cenote_mysql::mysql_async::prelude::Queryable;
use tokio_postgres::Config;

use super::GROUP;
use super::crew::LIMIT;

#[derive(Clone)]
pub(super) enum Pool {
    Postgres(cenote_postgres::Pool),
    Mysql(cenote_mysql::Pool),
}

pub(super) enum Lease {
    Postgres(cenote_postgres::Lease),
    Mysql(cenote_mysql::Lease),
}

/// What a member is told when it starts.
pub(super) struct Terms<'a> {
    /// Of the database, and of Redis or NATS if that keeps the cell.
    pub(super) urls: Vec<&'a str>,
    pub(super) is_counted: bool,
    pub(super) capacity: u32,
    pub(super) ttl: Duration,
}

/// Joins with these terms.
macro_rules! join {
    ($joining:expr, $terms:expr, $pool:expr) => {{
        let joining = $joining.capacity($terms.capacity).ttl($terms.ttl);
        joining.join($pool).await?
    }};
}

impl Pool {
    pub(super) async fn join(terms: &Terms<'_>) -> Result<(Self, Fleet), JoinError> {
        match terms.urls[0].starts_with("postgres:") {
            true => Self::join_on_postgres(terms).await,
            false => Self::join_on_mariadb(terms).await,
        }
    }

    /// Redis may keep the cell.
    async fn join_on_postgres(terms: &Terms<'_>) -> Result<(Self, Fleet), JoinError> {
        let mut options: Config = terms.urls[0].parse().unwrap();
        let counter = Fleet::postgres(&options, GROUP).unwrap();
        options.application_name(counter.tag("m"));
        let pool = cenote_postgres::Pool::with_options(options)
            .on_open_error(OnOpenError::Retry)
            .acquire_timeout(LIMIT)
            .build()
            .unwrap();
        let redis = terms.urls.get(1).map(|url| {
            let client = redis::Client::open(*url).unwrap();
            Fleet::redis(&client, GROUP).unwrap()
        });
        let fleet = match redis {
            None => join!(counter, terms, &pool),
            Some(redis) if terms.is_counted => join!(redis.counted_by(counter), terms, &pool),
            Some(redis) => join!(redis, terms, &pool),
        };
        Ok((Self::Postgres(pool), fleet))
    }

    /// NATS may keep the cell.
    async fn join_on_mariadb(terms: &Terms<'_>) -> Result<(Self, Fleet), JoinError> {
        let options = Opts::from_url(terms.urls[0]).unwrap();
        let counter = Fleet::mysql(&options, GROUP).unwrap();
        let options = match terms.is_counted {
            true => counter.tagged(&options),
            false => options,
        };
        let pool = cenote_mysql::Pool::with_options(options)
            .reset(Reset::Never) // the limit of the user does not count a session that was reset
            .on_open_error(OnOpenError::Retry)
            .acquire_timeout(LIMIT)
            .build()
            .unwrap();
        let nats = match terms.urls.get(1) {
            Some(url) => Some(Fleet::nats(&crate::nats::connect(url).await, GROUP).unwrap()),
            None => None,
        };
        let fleet = match nats {
            None => join!(counter, terms, &pool),
            Some(nats) if terms.is_counted => join!(nats.counted_by(counter), terms, &pool),
            Some(nats) => join!(nats, terms, &pool),
        };
        Ok((Self::Mysql(pool), fleet))
    }

    /// Returns the text of an error that is not a timeout.
    pub(super) async fn acquire(&self) -> Result<Lease, Option<String>> {
        let told =
            |is_timeout: bool, error: &dyn Debug| (!is_timeout).then(|| format!("{error:?}"));
        match self {
            Self::Postgres(pool) => match pool.acquire().await {
                Ok(lease) => Ok(Lease::Postgres(lease)),
                Err(error) => Err(told(error.is_timeout(), &error)),
            },
            Self::Mysql(pool) => match pool.acquire().await {
                Ok(lease) => Ok(Lease::Mysql(lease)),
                Err(error) => Err(told(error.is_timeout(), &error)),
            },
        }
    }
}

impl Lease {
    /// Runs a statement. It may fail: the sessions of a silent member are ended.
    pub(super) async fn run(&mut self) {
        match self {
            Self::Postgres(lease) => drop(lease.query_one("select 1", &[]).await),
            Self::Mysql(lease) => drop(lease.query_drop("select 1").await),
        }
    }
}
