//! NATS JetStream as the engine: the cell is a key of a bucket.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_nats::Subscriber;
use async_nats::jetstream::Context;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::kv::{Store, UpdateErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, LastRawMessageErrorKind};
use futures_util::StreamExt;

use crate::clock::Clock;
use crate::engine::{Engine, EngineError, Snapshot};
use crate::fleet::{Fleet, Joining};
use crate::group::{self, GroupError};

const BUCKET: &str = "cenote_fleet";

/// A server that has just deleted a bucket may still remove its files, also those of a new one of
/// the same name.
const GRACE: Duration = Duration::from_secs(1);

/// A key that was deleted has a last value that is empty and has this header. It is not that of a
/// new group.
const OPERATION: &str = "KV-Operation";

/// Keeps the cell in JetStream: in the key `GROUP` of the bucket `cenote_fleet`. The subject
/// `cenote_fleet.GROUP` carries the nudges, because a watch of the key would wake all members at
/// every renewal of each of them.
///
/// Every read is answered by the leader of the bucket. A bucket that was deleted and made again has
/// another time of its making, which is compared for equality only. The members then learn for a
/// TTL what they hold.
///
/// Sessions of the pool are not counted. [`Joining::counted_by`] adds it.
pub struct Nats {
    context: Context,
    group: String,
    /// Tells own nudges from others.
    voice: String,
    store: Option<Store>,
    clock: Clock,
    /// When the bucket was first seen to be gone.
    gone_since: Option<Duration>,
    nudges: Option<Subscriber>,
    only_looks: bool,
}

impl Fleet {
    /// Begins to join a group that is kept in NATS JetStream. The group is named by letters,
    /// digits, `-` and `_`, and 40 of them at most.
    ///
    /// The first member makes the bucket, with one replica. For a cluster make it before:
    /// `nats kv add cenote_fleet --replicas 3`. A missing key may be one that was lost, so its
    /// first members learn for a TTL. For a new group write an empty value before:
    /// `nats kv put cenote_fleet orders ""`.
    ///
    /// The client finds out by its pings that a connection is dead. Their default interval is a
    /// minute: give it a `ping_interval` of less than the TTL.
    ///
    /// The user publishes to `$JS.API.STREAM.INFO.KV_cenote_fleet`,
    /// `$JS.API.STREAM.MSG.GET.KV_cenote_fleet`, `$KV.cenote_fleet.GROUP` and `cenote_fleet.GROUP`,
    /// and to make the bucket, to `$JS.API.STREAM.CREATE.KV_cenote_fleet`. It subscribes to
    /// `cenote_fleet.GROUP` and to its inbox.
    ///
    /// ```no_run
    /// # async fn f(pool: cenote_postgres::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_fleet::Fleet;
    ///
    /// let client = async_nats::connect("nats://localhost").await?;
    /// let context = async_nats::jetstream::new(client);
    /// let fleet = Fleet::nats(&context, "orders")?.capacity(80).join(&pool).await?;
    /// # drop(fleet);
    /// # Ok(()) }
    /// ```
    pub fn nats(context: &Context, group: &str) -> Result<Joining<Nats>, GroupError> {
        Ok(Self::on(Nats {
            context: context.clone(),
            group: group::named(group)?,
            voice: format!("{:016x}", fastrand::u64(..)),
            store: None,
            clock: Clock::new(),
            gone_since: None,
            nudges: None,
            only_looks: false,
        }))
    }
}

impl Nats {
    /// Asks for the bucket as it is now, and makes it if there is none.
    async fn store(&mut self) -> Result<Store, EngineError> {
        let error = match self.context.get_key_value(BUCKET).await {
            Ok(store) => {
                self.gone_since = None;
                return Ok(store);
            }
            Err(error) => error,
        };
        if !is_missing(&error) {
            return Err(error.into());
        }
        if self.only_looks {
            return Err("the server has no bucket `cenote_fleet`".into());
        }
        let now = self.clock.now();
        let since = *self.gone_since.get_or_insert(now);
        if self.store.is_some() && now - since < GRACE {
            return Err("the bucket was deleted, and will be made again".into());
        }
        // The driver's own function for it cannot read what server 2.9 tells of its limits.
        self.context.create_stream(bucket()).await?;
        Ok(self.context.get_key_value(BUCKET).await?)
    }

    /// Asks the leader for the last value and its revision.
    async fn last(&self, store: &Store) -> Result<(u64, Option<Vec<u8>>), EngineError> {
        let subject = format!("$KV.{BUCKET}.{}", self.group);
        match store.stream.get_last_raw_message_by_subject(&subject).await {
            Ok(last) => {
                let is_deleted = last.headers.get(OPERATION).is_some();
                let value = (!is_deleted).then(|| last.payload.to_vec());
                Ok((last.sequence, value))
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok((0, None)),
            Err(error) => Err(error.into()),
        }
    }

    fn subject(&self) -> String {
        format!("cenote_fleet.{}", self.group)
    }
}

impl Engine for Nats {
    /// The revision of the key. Zero is that of a key without a value.
    type Version = u64;

    async fn read(&mut self) -> Result<Snapshot<u64>, EngineError> {
        if self.nudges.is_none() {
            self.nudges = Some(self.context.client().subscribe(self.subject()).await?);
        }
        let store = self.store().await?;
        // Both backends for times become this one.
        let made = SystemTime::from(store.stream.cached_info().created);
        let origin = made.duration_since(UNIX_EPOCH)?.as_nanos() as u64;
        let (revision, value) = self.last(&store).await?;
        self.store = Some(store);
        Ok(Snapshot::of(origin, revision, value))
    }

    async fn swap(&mut self, version: &u64, bytes: &[u8]) -> Result<bool, EngineError> {
        let store = self.store.as_ref().ok_or("nothing was read before")?;
        let bytes = bytes.to_vec().into();
        match store.update(&self.group, bytes, *version).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn nudge(&mut self) -> Result<(), EngineError> {
        let voice = self.voice.clone().into();
        Ok(self.context.client().publish(self.subject(), voice).await?)
    }

    async fn nudged(&mut self) {
        while let Some(nudges) = &mut self.nudges {
            match nudges.next().await {
                Some(nudge) if nudge.payload == self.voice => {}
                Some(_) => return,
                None => self.nudges = None,
            }
        }
        std::future::pending().await
    }

    fn only_look(&mut self) {
        self.only_looks = true;
    }
}

/// A bucket as all clients make it, except that no replica may answer for its leader.
fn bucket() -> Config {
    Config {
        name: format!("KV_{BUCKET}"),
        subjects: vec![format!("$KV.{BUCKET}.>")],
        max_messages_per_subject: 1,
        discard: DiscardPolicy::New,
        allow_rollup: true,
        deny_delete: true,
        ..Config::default()
    }
}

/// Returns whether the server has said that there is no such stream.
fn is_missing(error: &async_nats::jetstream::context::KeyValueError) -> bool {
    use async_nats::jetstream::context::GetStreamError;
    let source = std::error::Error::source(error);
    let source = source.and_then(|source| source.downcast_ref::<GetStreamError>());
    source.is_some_and(|source| match source.kind() {
        GetStreamErrorKind::JetStream(error) => error.error_code() == ErrorCode::STREAM_NOT_FOUND,
        _ => false,
    })
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nats")
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}
