//! A real PostgreSQL server: keys are databases, connections are killed, and the server restarts
//! under load. It never sees more sessions than the total.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cenote::{LeaseEnd, Manager};
use cenote_keyed::Pools;
use fastrand::Rng;
use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, Config, NoTls};

use crate::LIMIT;

const TOTAL: usize = 5;
const DATABASES: u32 = 12;

/// Opens sessions in one database.
struct Sessions(Config);

impl Manager for Sessions {
    type Resource = Client;
    type Error = tokio_postgres::Error;

    async fn open(&self) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = self.0.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    async fn check(&self, client: &mut Client) -> Result<(), tokio_postgres::Error> {
        client.simple_query("").await.map(drop)
    }

    fn is_broken(&self, client: &mut Client, end: LeaseEnd) -> bool {
        client.is_closed() || matches!(end, LeaseEnd::Cancelled | LeaseEnd::Unwinding)
    }

    async fn close(&self, client: Client) -> Result<(), tokio_postgres::Error> {
        // The session has ended when the server has closed the socket, which ends the connection.
        let goodbye = client.simple_query("select pg_terminate_backend(pg_backend_pid())");
        drop(goodbye.await);
        Ok(())
    }
}

fn pools(url: &str) -> Pools<u32, Sessions> {
    let base: Config = url.parse().unwrap();
    let pools = Pools::builder(move |database: &u32| {
        let mut config = base.clone();
        config
            .dbname(format!("tenant_{database}"))
            .application_name("keyed");
        Sessions(config)
    });
    let pools = pools
        .total(TOTAL)
        .max_size(3)
        .acquire_timeout(LIMIT)
        .open_timeout(LIMIT);
    pools.build().unwrap()
}

struct Admin(Client);

impl Admin {
    async fn at(url: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        Self(client)
    }

    async fn make_databases(&self) {
        for database in 0..DATABASES {
            let sql = format!("create database tenant_{database}");
            self.0.batch_execute(&sql).await.unwrap();
        }
    }

    async fn sessions(&self) -> Result<i64, tokio_postgres::Error> {
        let sql = "select count(*) from pg_stat_activity where application_name = 'keyed'";
        Ok(self.0.query_one(sql, &[]).await?.get(0))
    }

    /// Ends one session of the pools.
    async fn kill_one(&self) {
        let sql = "select pg_terminate_backend(pid) from pg_stat_activity \
                   where application_name = 'keyed' order by random() limit 1";
        self.0.execute(sql, &[]).await.unwrap();
    }
}

/// Queries random databases until it is told to stop. A query whose connection was killed fails,
/// and is no failure of the pools.
async fn load(
    pools: Pools<u32, Sessions>,
    seed: u64,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
) {
    let mut rng = Rng::with_seed(seed);
    while !stop.load(Ordering::Relaxed) {
        // Half of the load goes to one tenant.
        let database = if rng.bool() { 0 } else { rng.u32(..DATABASES) };
        let Ok(client) = pools.acquire(&database).await else {
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        if let Ok(row) = client.query_one("select current_database()", &[]).await {
            assert_eq!(row.get::<_, String>(0), format!("tenant_{database}"));
            done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Waits until `more` more queries have succeeded.
async fn progress(done: &AtomicUsize, more: usize) {
    let goal = done.load(Ordering::Relaxed) + more;
    let reached = timeout(LIMIT, async {
        while done.load(Ordering::Relaxed) < goal {
            sleep(Duration::from_millis(5)).await;
        }
    });
    reached.await.expect("the load goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_connections_and_a_restart_under_load_break_no_cap_and_forget_no_caller() {
    let mut server = cenote_servers::postgres::start().unwrap();
    let admin = Admin::at(server.url()).await;
    admin.make_databases().await;
    let pools = pools(server.url());
    let (stop, done) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let tasks: Vec<_> = (0..16)
        .map(|seed| {
            tokio::spawn(load(
                pools.clone(),
                seed,
                Arc::clone(&stop),
                Arc::clone(&done),
            ))
        })
        .collect();

    for _ in 0..20 {
        progress(&done, 10).await;
        let sessions = admin.sessions().await.unwrap();
        assert!(sessions <= TOTAL as i64, "{sessions} sessions of {TOTAL}");
        admin.kill_one().await;
    }
    server.restart().unwrap();
    let admin = Admin::at(server.url()).await;
    for _ in 0..10 {
        progress(&done, 10).await;
        let sessions = admin.sessions().await.unwrap();
        assert!(sessions <= TOTAL as i64, "{sessions} sessions of {TOTAL}");
    }

    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    // Every tenant is served, whatever has happened to its connections.
    for database in 0..DATABASES {
        let client = pools.acquire(&database).await.unwrap();
        client.simple_query("select 1").await.unwrap();
    }
    let left = pools.close_within(LIMIT).await;
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(pools.status().held, 0);
}
