//! The private server of one play, and PgBouncer in front of it if the system has one.

use std::io;

use cenote_servers::{Server, pgbouncer, postgres};
use tokio::runtime::Builder;
use tokio_postgres::{Client, NoTls};

use crate::pool::GROUP;
use crate::system::{CAPACITY, System};

/// What the server writes into its log when it refuses a session.
const REFUSED: &str = "too many connections";

/// The servers of one play. Dropping it stops them.
pub(crate) struct Place {
    // Fields are dropped in this order.
    bouncer: Option<Server>,
    postgres: Server,
}

impl Place {
    pub(crate) fn start(system: System) -> Result<Self, String> {
        let text = |error: io::Error| error.to_string();
        // The processes may have more than the default limit, where they are not held back.
        let postgres = postgres::start_with(&[("max_connections", "300")]).map_err(text)?;
        let limit = if system.has_limit() {
            CAPACITY as i32
        } else {
            -1
        };
        let mut sql = format!("create role app login connection limit {limit};");
        if system == System::Cenote {
            sql += cenote_fleet::TABLE;
            sql += &format!(
                "; insert into cenote_fleet values ('{GROUP}', 0, ''); \
                 grant select, insert, update on cenote_fleet to app; \
                 grant execute on function pg_control_system() to app"
            );
        }
        run(postgres.url(), &sql)?;
        let mut place = Self {
            bouncer: None,
            postgres,
        };
        if system == System::PgBouncer {
            let size = CAPACITY.to_string();
            let settings = [("default_pool_size", size.as_str())];
            let bouncer = pgbouncer::start_with(&place.app_url(), &settings);
            place.bouncer = Some(bouncer.map_err(text)?);
        }
        Ok(place)
    }

    /// Returns the URL for the processes.
    pub(crate) fn url(&self) -> String {
        match &self.bouncer {
            Some(bouncer) => bouncer.url().to_owned(),
            None => self.app_url(),
        }
    }

    /// Returns the URL for an observer, whose session is not counted.
    pub(crate) fn admin_url(&self) -> &str {
        self.postgres.url()
    }

    /// Returns how many sessions the server has refused.
    pub(crate) fn refused(&self) -> usize {
        self.postgres.log().matches(REFUSED).count()
    }

    fn app_url(&self) -> String {
        self.postgres.url().replace("postgres@", "app@")
    }
}

fn run(url: &str, sql: &str) -> Result<(), String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let done = runtime.block_on(async { connect(url).await?.batch_execute(sql).await });
    done.map_err(|error| format!("{error}: {sql}"))
}

pub(crate) async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
