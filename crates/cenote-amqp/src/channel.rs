//! The channel that is lent. It knows what was done with it.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lapin::options::{
    BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ExchangeBindOptions,
    ExchangeDeclareOptions, ExchangeDeleteOptions, ExchangeUnbindOptions, QueueBindOptions,
    QueueDeclareOptions, QueueDeleteOptions, QueuePurgeOptions,
};
use lapin::types::{FieldTable, MessageCount, ShortString};
use lapin::{
    BasicProperties, ChannelStatus, Confirmation, Consumer, ExchangeKind, PublisherConfirm, Queue,
};

use crate::error::Error;

/// How long a channel that had a consumer stays open after its last use. Far longer than a thread
/// is kept from running on a busy machine.
const CANCEL_TIME: Duration = Duration::from_millis(100);

/// A channel of RabbitMQ. It has the functions of [`lapin::Channel`], with the same names and
/// arguments.
///
/// The functions that are listed here leave nothing behind on the channel, so it is lent again,
/// except after [`basic_consume`](Self::basic_consume). All others are reached by `Deref`:
/// `basic_get`, `basic_qos`, transactions, `confirm_select`. A channel that was dereferenced is
/// closed when it comes back, because the pool cannot know what was done with it. Opening another
/// one takes one round trip.
///
/// A future of these functions that is dropped before it is done has the same effect.
pub struct Channel {
    channel: lapin::Channel,
    /// Its state cannot be known any more.
    is_spent: AtomicBool,
    /// The server may not have seen all that was published.
    is_unproven: AtomicBool,
    had_consumer: AtomicBool,
}

/// Writes functions that call the function of the driver with the same name.
macro_rules! forward {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        impl Channel {$(
            #[doc = concat!("See [`lapin::Channel::", stringify!($name), "`].")]
            ///
            /// # Cancel safety
            /// If this future is dropped midway, the channel is closed when it comes back. The
            /// server may have done what was asked.
            pub async fn $name(&self, $($arg: $type),*) -> lapin::Result<$out> {
                self.undisturbed(self.channel.$name($($arg),*)).await
            }
        )*}
    };
}

forward! {
    queue_declare(queue: ShortString, options: QueueDeclareOptions, arguments: FieldTable)
        -> Queue;
    queue_bind(
        queue: ShortString, exchange: ShortString, routing_key: ShortString,
        options: QueueBindOptions, arguments: FieldTable
    ) -> ();
    queue_unbind(
        queue: ShortString, exchange: ShortString, routing_key: ShortString,
        arguments: FieldTable
    ) -> ();
    queue_purge(queue: ShortString, options: QueuePurgeOptions) -> MessageCount;
    queue_delete(queue: ShortString, options: QueueDeleteOptions) -> MessageCount;
    exchange_declare(
        exchange: ShortString, kind: ExchangeKind, options: ExchangeDeclareOptions,
        arguments: FieldTable
    ) -> ();
    exchange_bind(
        destination: ShortString, source: ShortString, routing_key: ShortString,
        options: ExchangeBindOptions, arguments: FieldTable
    ) -> ();
    exchange_unbind(
        destination: ShortString, source: ShortString, routing_key: ShortString,
        options: ExchangeUnbindOptions, arguments: FieldTable
    ) -> ();
    exchange_delete(exchange: ShortString, options: ExchangeDeleteOptions) -> ();
}

impl Channel {
    pub(crate) fn new(channel: lapin::Channel) -> Self {
        Self {
            channel,
            is_spent: AtomicBool::new(false),
            is_unproven: AtomicBool::new(false),
            had_consumer: AtomicBool::new(false),
        }
    }

    /// See [`lapin::Channel::basic_consume`]. The channel is closed when it comes back, and its
    /// place in the pool is free a tenth of a second later.
    ///
    /// # Cancel safety
    /// If this future is dropped midway, the consumer ends with the channel.
    pub async fn basic_consume(
        &self,
        queue: ShortString,
        consumer_tag: ShortString,
        options: BasicConsumeOptions,
        arguments: FieldTable,
    ) -> lapin::Result<Consumer> {
        self.is_spent.store(true, Ordering::Relaxed);
        self.had_consumer.store(true, Ordering::Relaxed);
        let consume = &self.channel;
        consume
            .basic_consume(queue, consumer_tag, options, arguments)
            .await
    }

    /// Publishes a message to a queue or an exchange that must exist. In a pool with
    /// [`confirms`](crate::Builder::confirms) it returns when the server has taken charge of the
    /// message, and fails if the server refuses it or if no queue gets it. In other pools it
    /// returns when the message is on its way.
    ///
    /// # Cancel safety
    /// If this future is dropped midway, the channel is closed when it comes back. The message may
    /// have been published.
    pub async fn publish(
        &self,
        exchange: impl Into<ShortString>,
        routing_key: impl Into<ShortString>,
        payload: &[u8],
        properties: BasicProperties,
    ) -> Result<(), Error> {
        let (exchange, key) = (exchange.into(), routing_key.into());
        let confirms = self.channel.status().confirm();
        let options = BasicPublishOptions {
            mandatory: confirms,
            ..BasicPublishOptions::default()
        };
        let publishing = async {
            let publish = &self.channel;
            let confirm = publish.basic_publish(exchange, key, options, payload, properties);
            confirm.await?.await
        };
        match self.undisturbed(publishing).await? {
            Confirmation::Ack(None) => Ok(()),
            Confirmation::Ack(Some(_)) => Err(Error::Returned),
            Confirmation::Nack(_) => Err(Error::Refused),
            Confirmation::NotRequested => {
                self.is_unproven.store(true, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// See [`lapin::Channel::basic_publish`]. Before the channel is lent again, the pool waits
    /// until the server has seen the message, and has confirmed it in a pool with
    /// [`confirms`](crate::Builder::confirms).
    ///
    /// # Cancel safety
    /// If this future is dropped midway, the channel is closed when it comes back. The message may
    /// have been published.
    pub async fn basic_publish(
        &self,
        exchange: ShortString,
        routing_key: ShortString,
        options: BasicPublishOptions,
        payload: &[u8],
        properties: BasicProperties,
    ) -> lapin::Result<PublisherConfirm> {
        self.is_unproven.store(true, Ordering::Relaxed);
        let publish = &self.channel;
        let publish = publish.basic_publish(exchange, routing_key, options, payload, properties);
        self.undisturbed(publish).await
    }

    /// Returns the state of the channel.
    pub fn status(&self) -> &ChannelStatus {
        self.channel.status()
    }

    /// Returns the number of the channel on its connection.
    pub fn id(&self) -> u16 {
        self.channel.id()
    }

    /// Marks the channel if `call` is dropped before it is done: its answer would hit the next
    /// user.
    async fn undisturbed<T>(&self, call: impl Future<Output = T>) -> T {
        let mut unfinished = Unfinished(Some(&self.is_spent));
        let done = call.await;
        unfinished.0 = None;
        done
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::Relaxed) || !self.channel.status().connected()
    }

    pub(crate) fn is_unproven(&self) -> bool {
        self.is_unproven.load(Ordering::Relaxed)
    }

    /// Waits until the server has seen all that was sent. A server does what a channel asks in
    /// order, so one answer proves that nothing before it has failed. The call that is answered
    /// sets the limit of unacknowledged messages to none, as it is on a new channel.
    pub(crate) async fn prove(&self) -> lapin::Result<()> {
        if self.channel.status().confirm() {
            self.channel.wait_for_confirms().await?;
        }
        self.channel
            .basic_qos(0, BasicQosOptions::default())
            .await?;
        self.is_unproven.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Says goodbye. A channel that the server has closed needs none.
    ///
    /// It waits first until the server has seen all that was sent. If the server closed the channel
    /// at the same moment, the driver would take the answer to this goodbye for one of the next
    /// channel with the same number.
    ///
    /// When a consumer is dropped, the driver looks whether its channel is open and then cancels
    /// the consumer, in a task of its own. If the goodbye came between the two, the server would
    /// end the whole connection, because a closed channel cancels nothing. So a channel that had a
    /// consumer is left open for a while.
    pub(crate) async fn close(self) -> lapin::Result<()> {
        if self.had_consumer.load(Ordering::Relaxed) {
            tokio::time::sleep(CANCEL_TIME).await;
        }
        if self.channel.status().connected() {
            self.channel
                .basic_qos(0, BasicQosOptions::default())
                .await?;
        }
        if self.channel.status().connected() {
            self.channel.close(200, "OK".into()).await?;
        }
        Ok(())
    }
}

/// Marks a channel when it is dropped, unless the call is done.
struct Unfinished<'a>(Option<&'a AtomicBool>);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(is_spent) = self.0 {
            is_spent.store(true, Ordering::Relaxed);
        }
    }
}

/// The channel of the driver. It is closed when it comes back.
impl Deref for Channel {
    type Target = lapin::Channel;

    fn deref(&self) -> &lapin::Channel {
        self.is_spent.store(true, Ordering::Relaxed);
        &self.channel
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("id", &self.channel.id())
            .field("is_spent", &self.is_spent())
            .finish_non_exhaustive()
    }
}
