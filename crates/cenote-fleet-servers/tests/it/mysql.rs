//! A real MariaDB server keeps the cell, counts its sessions, and ends those of silent members.

mod observed;

use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use cenote_fleet::{Fleet, JoinError, MYSQL_TABLES};
use cenote_mysql::Mysql;
use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_mysql::mysql_async::{Conn, Opts, OptsBuilder};
use cenote_servers::Server;
use cenote_testkit::Proxy;
pub(crate) use observed::Database;
use tokio::time::timeout;

use crate::SECOND;
use crate::live::{Place, Seat, TTL, outlives_forgotten_connections, until};
use crate::suite::suite;

suite!(OnMariadb);

struct OnMariadb {
    server: Mutex<Server>,
    database: Database,
    /// Of the control connections.
    options: Opts,
    saved: Vec<u8>,
}

impl Place for OnMariadb {
    type Manager = Mysql;

    const OVERHEAD: u32 = 2;
    const FENCES: bool = true;
    const LEARNS_AFTER_RESTART: bool = true;

    async fn start() -> Self {
        let server = cenote_servers::mariadb::start().unwrap();
        let database = Database::at(server.url()).await;
        Self {
            options: database.options.clone(),
            database,
            server: Mutex::new(server),
            saved: Vec::new(),
        }
    }

    async fn try_join(&self, ttl: Duration) -> Result<Seat<Mysql>, JoinError> {
        let joining = Fleet::mysql(&self.options, "orders").unwrap();
        let pool = self.database.pool(&joining);
        Seat::take(joining.overhead(1), &pool, ttl).await
    }

    async fn count(&self) -> u32 {
        self.database.sessions().await
    }

    fn restart(&self) {
        self.server.lock().unwrap().restart().unwrap();
    }

    async fn wipe(&self) {
        self.database.run("DELETE FROM cenote_fleet").await;
    }

    async fn save(&mut self) {
        let mut admin = self.database.admin().await;
        let cell = admin.query_first("SELECT cell FROM cenote_fleet").await;
        self.saved = cell.unwrap().unwrap();
    }

    async fn put_back(&self) {
        let mut admin = self.database.admin().await;
        let sql = "UPDATE cenote_fleet SET cell = ?";
        admin.exec_drop(sql, (&self.saved,)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_without_a_tag_take_a_part_of_the_budget() {
    let place = OnMariadb::start().await;
    let seat = place.join().await;
    let share = || seat.fleet.status().share;
    let _leases = seat.hold(9).await;
    // The first takes the place that is kept for a process that joins.
    let first = Conn::new(place.database.options.clone()).await.unwrap();
    let second = Conn::new(place.database.options.clone()).await.unwrap();

    until(|| format!("one less than {}", share()), || share() == 8).await;
    second.disconnect().await.unwrap();

    until(|| format!("one more than {}", share()), || share() == 9).await;
    first.disconnect().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_may_not_make_tables_joins_after_a_migration() {
    let place = OnMariadb::start().await;
    let refused = "REVOKE CREATE ON shop.* FROM app@'%'";
    place.database.run(refused).await;
    let error = place.try_join(TTL).await.err().unwrap();
    let said = error.to_string();
    assert!(said.contains("CREATE command denied"), "{said}");

    for table in MYSQL_TABLES {
        place.database.run(table).await;
    }
    let group = "INSERT INTO cenote_fleet VALUES ('orders', '')";
    place.database.run(group).await;

    let seat = place.join().await;
    assert!(seat.fleet.status().learned);
    assert_eq!(seat.hold(9).await.len(), 9);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_full_is_waited_for() {
    let place = OnMariadb::start().await;
    let limit = "ALTER USER app@'%' WITH MAX_USER_CONNECTIONS";
    place.database.run(&format!("{limit} 4")).await;
    let seat = place.join().await;

    let leases = seat.hold(3).await; // and the control connection
    let wanted = seat.want(3);
    let refused = || seat.pool.status().open_failed > 1;
    until(|| "opens are refused".to_owned(), refused).await;

    assert_eq!((seat.in_use(), wanted.is_finished()), (3, false));
    drop(leases);
    assert_eq!(wanted.await.unwrap().len(), 3);
    place.database.run(&format!("{limit} 0")).await;
    assert_eq!(seat.hold(9).await.len(), 9, "the others are opened");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_joins_a_full_server_waits_for_a_place() {
    let place = OnMariadb::start().await;
    let limit = "ALTER USER app@'%' WITH MAX_USER_CONNECTIONS 1";
    place.database.run(limit).await;
    let occupant = Conn::new(place.database.options.clone()).await.unwrap();

    let mut joining = pin!(place.try_join(TTL));
    let early = timeout(SECOND, &mut joining).await;
    occupant.disconnect().await.unwrap();

    assert!(early.is_err(), "the server was full");
    assert!(joining.await.is_ok());
}

/// So the limit of a user is no wall for a pool that resets its sessions, as the README says.
#[tokio::test]
async fn the_limit_of_a_user_does_not_count_a_session_that_was_reset() {
    let place = OnMariadb::start().await;
    let limit = "ALTER USER app@'%' WITH MAX_USER_CONNECTIONS 1";
    place.database.run(limit).await;
    let open = || Conn::new(place.database.options.clone());
    let mut first = open().await.unwrap();
    assert!(open().await.is_err());

    assert!(first.reset().await.unwrap());

    let second = open().await.unwrap();
    assert!(open().await.is_err());
    second.disconnect().await.unwrap();
    first.disconnect().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_connection_that_is_killed_is_opened_again() {
    let place = OnMariadb::start().await;
    let seat = place.join().await;
    let control = "SELECT id FROM cenote_fleet_session";
    let mut admin = place.database.admin().await;
    let control: u64 = admin.query_first(control).await.unwrap().unwrap();

    admin.query_drop(format!("KILL {control}")).await.unwrap();

    seat.renews().await;
    assert_eq!(seat.fleet.status().members.len(), 1);
    assert_eq!(seat.fleet.status().lapses, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_have_ended_are_forgotten() {
    let place = OnMariadb::start().await;
    let gone = place.join().await;
    drop(gone.hold(5).await);
    gone.fleet.leave().await;
    drop(gone.pool);

    let _seat = place.join().await;

    let mut admin = place.database.admin().await;
    let kept = "SELECT COUNT(*) FROM cenote_fleet_session";
    let kept: u32 = admin.query_first(kept).await.unwrap().unwrap();
    assert!(kept <= 2, "{kept} rows for one session, and one that ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_connection_that_is_forgotten_is_replaced() {
    let mut place = OnMariadb::start().await;
    let addr = place.server.lock().unwrap().addr();
    let proxy = Proxy::to(addr).await.unwrap();
    let options = OptsBuilder::from_opts(place.options);
    place.options = options.tcp_port(proxy.addr().port()).into();

    outlives_forgotten_connections(&place.join().await, &proxy).await;
}
