//! The pools of the driver crates.

use std::future::Future;

use crate::pool::{BuildError, RocketPool};
use crate::settings::Settings;

macro_rules! driver {
    ($feature:literal, $driver:ident, $manager:ident) => {
        #[cfg(feature = $feature)]
        impl RocketPool for $driver::Pool {
            type Manager = $driver::$manager;
            type Connection = $driver::Lease;
            type Error = $driver::Error;

            fn build(settings: &Settings<'_>) -> Result<Self, BuildError> {
                Ok(Self::from_config(settings.driver()?).build()?)
            }

            fn pool(&self) -> &cenote::Pool<$driver::$manager> {
                self
            }

            fn acquire(
                &self,
            ) -> impl Future<Output = Result<Self::Connection, Self::Error>> + Send {
                self.acquire()
            }
        }
    };
}

driver!("mysql", cenote_mysql, Mysql);
driver!("postgres", cenote_postgres, Postgres);

#[cfg(feature = "sqlx")]
mod on_sqlx {
    use cenote_sqlx::{Builder, Db, Dialect, Lease, Sql};
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Config {
        url: String,
        /// See [`Builder::setting`].
        #[serde(default)]
        settings: Vec<String>,
        pool: cenote::Config,
    }

    impl<DB: Dialect> RocketPool for Db<DB> {
        type Manager = Sql<DB>;
        type Connection = Lease<DB>;
        type Error = sqlx::Error;

        fn build(settings: &Settings<'_>) -> Result<Self, BuildError> {
            let Config {
                url,
                settings,
                pool,
            } = settings.driver()?;
            let builder = Self::from_url(url).config(pool);
            Ok(settings
                .into_iter()
                .fold(builder, Builder::setting)
                .build()?)
        }

        fn pool(&self) -> &cenote::Pool<Sql<DB>> {
            self.pool()
        }

        fn acquire(&self) -> impl Future<Output = Result<Lease<DB>, sqlx::Error>> + Send {
            self.acquire()
        }
    }
}
