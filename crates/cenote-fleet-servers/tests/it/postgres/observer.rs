//! Looks at the server from outside, by a session that belongs to no member.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_postgres::{Client, NoTls};

const SESSIONS: &str = "select count(*) from pg_stat_activity \
     where application_name like '%cn:orders:%' and backend_type = 'client backend'";

pub(super) struct Admin(Client);

impl Admin {
    pub(super) async fn at(url: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        Self(client)
    }

    pub(super) async fn run(&self, sql: &str) {
        self.0.batch_execute(sql).await.unwrap();
    }

    pub(super) async fn asks(&self, sql: &str) -> bool {
        self.0.query_one(sql, &[]).await.unwrap().get(0)
    }

    pub(super) async fn sessions(&self) -> u32 {
        let count: i64 = self.0.query_one(SESSIONS, &[]).await.unwrap().get(0);
        count.try_into().unwrap()
    }

    /// Returns how many there were. Their names are tags without more.
    pub(super) async fn end_control_connections(&self) -> u64 {
        let sql = "select pg_terminate_backend(pid) from pg_stat_activity \
                   where application_name like 'cn:orders:%'";
        self.0.execute(sql, &[]).await.unwrap()
    }
}

/// Counts the sessions of the fleet, again and again.
pub(super) struct Observer {
    most: Arc<AtomicU32>,
    stop: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Observer {
    pub(super) async fn watch(url: &str) -> Self {
        let admin = Admin::at(url).await;
        let (most, stop) = (Arc::<AtomicU32>::default(), Arc::<AtomicBool>::default());
        let (seen, over) = (Arc::clone(&most), Arc::clone(&stop));
        let task = tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                seen.fetch_max(admin.sessions().await, Ordering::Relaxed);
                sleep(Duration::from_millis(2)).await;
            }
        });
        Self { most, stop, task }
    }

    /// Returns whether there were so many sessions at once.
    pub(super) fn has_seen(&self, count: u32) -> bool {
        self.most.load(Ordering::Relaxed) >= count
    }

    /// Stops, and returns the most sessions that were seen at once.
    pub(super) async fn most(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.unwrap();
        self.most.load(Ordering::Relaxed)
    }
}
