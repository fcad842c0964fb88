//! Private servers that keep a fleet, and how a process joins it there.

use std::any::Any;
use std::time::Duration;

use cenote::{Manager, Pool};
use cenote_fleet::engine::Engine;
use cenote_fleet::{Fleet, Joining};
#[cfg(feature = "mysql")]
use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_servers::Server;

/// What must happen happens long before this, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A member in this process, and what its callers hold.
pub(super) struct Member {
    pub(super) fleet: Fleet,
    _held: Box<dyn Any>,
}

impl Member {
    async fn take<E: Engine, M: Manager + 'static>(
        joining: Joining<E>,
        pool: &Pool<M>,
        (name, holds): (&str, usize),
    ) -> Self {
        let joining = joining.capacity(12).name(name);
        let fleet = joining.join(pool).await.unwrap();
        let mut leases = Vec::new();
        for _ in 0..holds {
            let lease = pool.acquire_within(LIMIT).await;
            leases.push(lease.unwrap_or_else(|error| panic!("{error}")));
        }
        Self {
            fleet,
            _held: Box::new((pool.clone(), leases)),
        }
    }
}

pub(super) trait Place {
    /// The sessions of a member beside its pool.
    const OVERHEAD: u32;
    /// The engine counts the sessions.
    const COUNTS: bool;
    /// What the program says of a server that keeps no fleet.
    const EMPTY: &str;

    fn start() -> Server;

    /// Makes the database, and returns its URL.
    async fn database(server: &Server) -> String {
        server.url().to_owned()
    }

    /// Makes the group, so that its first member need not learn.
    async fn prepare(_: &str) {}

    async fn join(url: &str, name: &str, holds: usize) -> Member;
}

#[cfg(feature = "postgres")]
pub(super) struct Postgres;

#[cfg(feature = "postgres")]
impl Place for Postgres {
    const OVERHEAD: u32 = 2;
    const COUNTS: bool = true;
    const EMPTY: &str = "relation \"cenote_fleet\" does not exist";

    fn start() -> Server {
        cenote_servers::postgres::start().unwrap()
    }

    async fn join(url: &str, name: &str, holds: usize) -> Member {
        let mut options: cenote_postgres::tokio_postgres::Config = url.parse().unwrap();
        let joining = Fleet::postgres(&options, "orders").unwrap();
        options.application_name(joining.tag(name));
        let pool = cenote_postgres::Pool::with_options(options).open_timeout(LIMIT);
        let pool = pool.build().unwrap();
        Member::take(joining.overhead(1), &pool, (name, holds)).await
    }
}

#[cfg(feature = "mysql")]
pub(super) struct Mysql;

#[cfg(feature = "mysql")]
impl Place for Mysql {
    const OVERHEAD: u32 = 2;
    const COUNTS: bool = true;
    const EMPTY: &str = "cenote_fleet_session' doesn't exist";

    fn start() -> Server {
        cenote_servers::mariadb::start().unwrap()
    }

    async fn database(server: &Server) -> String {
        let options = cenote_mysql::mysql_async::Opts::from_url(server.url()).unwrap();
        let mut conn = cenote_mysql::mysql_async::Conn::new(options).await.unwrap();
        conn.query_drop("CREATE DATABASE shop").await.unwrap();
        conn.disconnect().await.unwrap();
        format!("{}/shop", server.url())
    }

    async fn join(url: &str, name: &str, holds: usize) -> Member {
        let options = cenote_mysql::mysql_async::Opts::from_url(url).unwrap();
        let joining = Fleet::mysql(&options, "orders").unwrap();
        let pool = cenote_mysql::Pool::with_options(joining.tagged(&options));
        let pool = pool.open_timeout(LIMIT).build().unwrap();
        Member::take(joining.overhead(1), &pool, (name, holds)).await
    }
}

/// A pool whose connections lead to neither Redis nor NATS.
#[cfg(any(feature = "nats", feature = "redis"))]
fn elsewhere() -> Pool<impl Manager> {
    let open = async || Ok::<_, std::convert::Infallible>(());
    Pool::from_fn(open).build().unwrap()
}

#[cfg(feature = "redis")]
pub(super) struct Redis;

#[cfg(feature = "redis")]
impl Redis {
    fn client(url: &str) -> cenote_redis::redis::Client {
        cenote_redis::redis::Client::open(url).unwrap()
    }
}

#[cfg(feature = "redis")]
impl Place for Redis {
    const OVERHEAD: u32 = 0;
    const COUNTS: bool = false;
    const EMPTY: &str = "no group `orders` on this server: check its name";

    fn start() -> Server {
        cenote_servers::redis::start().unwrap()
    }

    async fn prepare(url: &str) {
        let client = Self::client(url);
        let mut conn = client.get_multiplexed_async_connection().await.unwrap();
        let set = cenote_redis::redis::Cmd::set("cenote_fleet:orders", "");
        let () = set.query_async(&mut conn).await.unwrap();
    }

    async fn join(url: &str, name: &str, holds: usize) -> Member {
        let joining = Fleet::redis(&Self::client(url), "orders").unwrap();
        Member::take(joining, &elsewhere(), (name, holds)).await
    }
}

#[cfg(feature = "nats")]
pub(super) struct Nats;

#[cfg(feature = "nats")]
impl Nats {
    async fn context(url: &str) -> async_nats::jetstream::Context {
        async_nats::jetstream::new(async_nats::connect(url).await.unwrap())
    }
}

#[cfg(feature = "nats")]
impl Place for Nats {
    const OVERHEAD: u32 = 0;
    const COUNTS: bool = false;
    const EMPTY: &str = "the server has no bucket `cenote_fleet`";

    fn start() -> Server {
        cenote_servers::nats::start().unwrap()
    }

    async fn prepare(url: &str) {
        let context = Self::context(url).await;
        let bucket = async_nats::jetstream::stream::Config {
            name: "KV_cenote_fleet".to_owned(),
            subjects: vec!["$KV.cenote_fleet.>".to_owned()],
            max_messages_per_subject: 1,
            ..Default::default()
        };
        context.create_stream(bucket).await.unwrap();
        let store = context.get_key_value("cenote_fleet").await.unwrap();
        store.put("orders", "".into()).await.unwrap();
    }

    async fn join(url: &str, name: &str, holds: usize) -> Member {
        let joining = Fleet::nats(&Self::context(url).await, "orders").unwrap();
        Member::take(joining, &elsewhere(), (name, holds)).await
    }
}
