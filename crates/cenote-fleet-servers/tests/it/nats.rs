//! A real NATS server keeps the cell.

use std::sync::Mutex;
use std::time::Duration;

use async_nats::jetstream::{self, Context, stream};
use cenote_fleet::protocol::MemberId;
use cenote_fleet::{Fleet, JoinError};
use cenote_servers::Server;
use cenote_testkit::Proxy;

use crate::SECOND;
use crate::files::Files;
use crate::live::{Place, Seat, outlives_forgotten_connections, until};
use crate::model::{Model, Sessions};
use crate::suite::suite;

suite!(OnNats);

pub(crate) const BUCKET: &str = "cenote_fleet";

pub(crate) struct OnNats {
    server: Mutex<Server>,
    pub(crate) url: String,
    context: Context,
    model: Model,
    saved: Vec<u8>,
}

/// Makes the bucket, and puts a value in it.
pub(crate) async fn put(context: &Context, value: Vec<u8>) {
    let config = stream::Config {
        name: format!("KV_{BUCKET}"),
        subjects: vec![format!("$KV.{BUCKET}.>")],
        max_messages_per_subject: 1,
        discard: stream::DiscardPolicy::New,
        allow_rollup: true,
        deny_delete: true,
        ..stream::Config::default()
    };
    context.get_or_create_stream(config).await.unwrap();
    let store = context.get_key_value(BUCKET).await.unwrap();
    store.put("orders", value.into()).await.unwrap();
}

pub(crate) async fn connect(url: &str) -> Context {
    // By default it waits longer after each try, up to four seconds, and pings once a minute.
    let options = async_nats::ConnectOptions::new()
        .retry_on_initial_connect()
        .reconnect_delay_callback(|_| Duration::from_millis(50))
        .ping_interval(SECOND);
    jetstream::new(options.connect(url).await.unwrap())
}

impl Place for OnNats {
    type Manager = Sessions;

    const OVERHEAD: u32 = 0;
    const FENCES: bool = false;
    const LEARNS_AFTER_RESTART: bool = false;

    async fn start() -> Self {
        let server = cenote_servers::nats::start().unwrap();
        let url = server.url().to_owned();
        let context = connect(&url).await;
        put(&context, Vec::new()).await;
        Self {
            context,
            url,
            server: Mutex::new(server),
            model: Model::default(),
            saved: Vec::new(),
        }
    }

    async fn try_join(&self, ttl: Duration) -> Result<Seat<Sessions>, JoinError> {
        // A client lives in the runtime that made it.
        let context = connect(&self.url).await;
        let joining = Fleet::nats(&context, "orders").unwrap();
        let pool = self.model.pool(joining.id());
        Seat::take(joining, &pool, ttl).await
    }

    async fn count(&self) -> u32 {
        self.model.count()
    }

    fn restart(&self) {
        self.server.lock().unwrap().restart().unwrap();
    }

    async fn wipe(&self) {
        self.context.delete_key_value(BUCKET).await.unwrap();
    }

    async fn save(&mut self) {
        let store = self.context.get_key_value(BUCKET).await.unwrap();
        let value = store.get("orders").await.unwrap();
        self.saved = value.unwrap().to_vec();
    }

    async fn put_back(&self) {
        self.wipe().await;
        // The server removes the files of the bucket a little later.
        let data = self.server.lock().unwrap().folder().join("data");
        let bucket = data
            .join("jetstream/$G/streams")
            .join(format!("KV_{BUCKET}"));
        until(|| "the files are gone".to_owned(), || !bucket.exists()).await;
        put(&self.context, self.saved.clone()).await;
    }

    fn was_killed(&self, id: MemberId) {
        self.model.end_all_of(id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_forgotten_is_replaced() {
    let mut place = OnNats::start().await;
    let proxy = Proxy::to_url(&place.url).await.unwrap();
    place.url = proxy.url(&place.url);

    outlives_forgotten_connections(&place.join().await, &proxy).await;
}

/// The server's own time of the making of the bucket is restored, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_is_restored_from_old_files_is_learned_again() {
    let place = OnNats::start().await;
    let (first, second) = (place.join().await, place.join().await);
    let data = place.server.lock().unwrap().folder().join("data");
    let old = place.while_stopped(|| Files::of(data));
    drop(first.hold(8).await);

    place.while_stopped(|| old.put_back());

    second.knows(false).await;
    second.knows(true).await;
    assert_eq!(second.fleet.status().members.len(), 2);
}

impl OnNats {
    fn while_stopped<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut server = self.server.lock().unwrap();
        server.stop().unwrap();
        let done = work();
        server.restart().unwrap();
        done
    }
}
