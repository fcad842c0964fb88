//! Channels on a real RabbitMQ: in use, misused, and under faults.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod broker;
mod building;
mod conformance;
mod dropped;
mod faults;
mod hygiene;
mod load;
mod publishing;
mod restart;
mod sharing;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cenote_amqp::lapin::options::{BasicGetOptions, QueueDeclareOptions};
use cenote_amqp::lapin::types::{AMQPValue, FieldTable, ShortString};
use cenote_amqp::{Builder, Lease, Pool};
use cenote_servers::Found;
use tokio::time::{sleep, timeout};

/// A real server needs milliseconds; this is enough on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Far longer than a test takes. A queue without a consumer would stay for ever.
const UNUSED_MS: i32 = 600_000;

/// The URL of the server that most tests share.
fn url() -> &'static str {
    static FOUND: OnceLock<Found> = OnceLock::new();
    let found = FOUND.get_or_init(|| cenote_servers::rabbitmq::find().unwrap());
    found.url()
}

fn builder_at(url: &str, size: usize) -> Builder {
    Pool::from_url(url)
        .max_size(size)
        .acquire_timeout(LIMIT)
        .open_timeout(LIMIT)
        .clean_timeout(LIMIT)
        .check_timeout(LIMIT)
        .close_timeout(LIMIT)
}

fn builder(size: usize) -> Builder {
    builder_at(url(), size)
}

/// Waits for the effect of another task or process.
async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = timeout(LIMIT, async {
        while !holds().await {
            sleep(Duration::from_millis(5)).await;
        }
    });
    waiting.await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// Declares a queue that no other test has. The server deletes it when it was not used for a while.
async fn queue(channel: &Lease) -> ShortString {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = ShortString::from(format!("cenote-{}-{number}", std::process::id()));
    let options = QueueDeclareOptions {
        auto_delete: true,
        ..QueueDeclareOptions::default()
    };
    let mut arguments = FieldTable::default();
    arguments.insert("x-expires".into(), AMQPValue::LongInt(UNUSED_MS));
    let declared = channel.queue_declare(name.clone(), options, arguments);
    declared.await.unwrap();
    name
}

/// Takes a message from a queue, on a channel that is closed afterwards.
async fn take(pool: &Pool, queue: &ShortString) -> Option<Vec<u8>> {
    let channel = pool.acquire().await.unwrap();
    let options = BasicGetOptions { no_ack: true };
    let got = channel.basic_get(queue.clone(), options).await.unwrap();
    got.map(|message| message.delivery.data.clone())
}

/// Returns whether the channel works: the server answers on it.
async fn works(channel: &Lease) -> bool {
    let declared = channel.queue_declare(
        "".into(),
        QueueDeclareOptions {
            auto_delete: true,
            exclusive: true,
            ..QueueDeclareOptions::default()
        },
        FieldTable::default(),
    );
    declared.await.is_ok()
}
