//! A real Redis server keeps the cell.

use std::future::ready;
use std::sync::Mutex;
use std::time::Duration;

use cenote_fleet::protocol::MemberId;
use cenote_fleet::{Fleet, JoinError};
use cenote_servers::Server;
use cenote_testkit::Proxy;
use redis::{Client, Cmd, FromRedisValue};

use crate::files::Files;
use crate::live::{Place, Seat, TTL, outlives_forgotten_connections};
use crate::model::{Model, Sessions};
use crate::suite::suite;

suite!(OnRedis);

const KEY: &str = "cenote_fleet:orders";

pub(crate) struct OnRedis {
    server: Mutex<Server>,
    pub(crate) client: Client,
    model: Model,
    saved: Option<Files>,
}

impl OnRedis {
    async fn ask<T: FromRedisValue>(&self, command: &mut Cmd) -> T {
        let conn = self.client.get_multiplexed_async_connection().await;
        command.query_async(&mut conn.unwrap()).await.unwrap()
    }
}

impl Place for OnRedis {
    type Manager = Sessions;

    const OVERHEAD: u32 = 0;
    const FENCES: bool = false;
    const LEARNS_AFTER_RESTART: bool = true;

    async fn start() -> Self {
        let server = cenote_servers::redis::start().unwrap();
        let place = Self {
            client: Client::open(server.url()).unwrap(),
            server: Mutex::new(server),
            model: Model::default(),
            saved: None,
        };
        let () = place.ask(Cmd::set(KEY, "").arg("NX")).await;
        place
    }

    async fn try_join(&self, ttl: Duration) -> Result<Seat<Sessions>, JoinError> {
        let joining = Fleet::redis(&self.client, "orders").unwrap();
        let pool = self.model.pool(joining.id());
        Seat::take(joining, &pool, ttl).await
    }

    fn count(&self) -> impl Future<Output = u32> + Send {
        ready(self.model.count())
    }

    fn restart(&self) {
        self.server.lock().unwrap().restart().unwrap();
    }

    async fn wipe(&self) {
        let () = self.ask(&mut redis::cmd("FLUSHALL")).await;
    }

    async fn save(&mut self) {
        let log = self.server.lock().unwrap().folder().join("appendonlydir");
        self.saved = Some(Files::of(log));
    }

    async fn put_back(&self) {
        let mut server = self.server.lock().unwrap();
        server.stop().unwrap();
        self.saved.iter().for_each(Files::put_back);
        server.restart().unwrap();
    }

    fn was_killed(&self, id: MemberId) {
        self.model.end_all_of(id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_forgotten_are_replaced() {
    let mut place = OnRedis::start().await;
    let url = place.server.lock().unwrap().url().to_owned();
    let proxy = Proxy::to_url(&url).await.unwrap();
    place.client = Client::open(proxy.url(&url)).unwrap();

    outlives_forgotten_connections(&place.join().await, &proxy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_is_refused() {
    let place = OnRedis::start().await;
    let () = place
        .ask(redis::cmd("REPLICAOF").arg("127.0.0.1").arg(1))
        .await;

    let error = place.try_join(TTL).await.err().unwrap();

    let said =
        "the engine of the fleet failed: this server is a replica: the fleet needs the primary";
    assert_eq!(error.to_string(), said);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_needs_only_what_the_documentation_says() {
    let mut place = OnRedis::start().await;
    let rules = "on >secret +eval +get +set +info +publish +subscribe ~cenote_fleet:* \
                 &cenote_fleet:*";
    let mut user = redis::cmd("ACL");
    user.arg("SETUSER").arg("fleet");
    let () = place
        .ask(user.arg(rules.split_whitespace().collect::<Vec<_>>()))
        .await;
    let url = place.server.lock().unwrap().url().to_owned();
    place.client = Client::open(url.replace("//", "//fleet:secret@")).unwrap();

    let (first, second) = (place.join().await, place.join().await);

    drop(first.hold(11).await);
    first.sees_members(2).await;
    second.renews().await;
}
