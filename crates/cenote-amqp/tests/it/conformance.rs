//! The conformance suite for managers, on connections and on channels.

use std::sync::Arc;

use cenote::second_level::Upper;
use cenote::{LeaseEnd, Manager};
use cenote_amqp::lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use cenote_amqp::lapin::{BasicProperties, Connection, Error};
use cenote_amqp::{Channel, Channels, Connections};
use cenote_testkit::conformance::Conformance;

use crate::{builder, eventually};

/// Makes the server end the connection.
async fn kill(connection: &mut Arc<Connection>) {
    let channel = connection.create_channel().await.unwrap();
    let options = BasicPublishOptions {
        immediate: true,
        ..BasicPublishOptions::default()
    };
    let properties = BasicProperties::default();
    drop(
        channel
            .basic_publish("".into(), "".into(), options, b"", properties)
            .await,
    );
    eventually("the client knows", async || {
        !connection.status().connected()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manager_of_connections_conforms() {
    let pool = builder(1).build().unwrap();
    Conformance::new(pool.connections().manager().clone())
        .kill(kill)
        .run()
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_opens_channels_conforms() {
    for confirms in [true, false] {
        let pool = builder(1).confirms(confirms).build().unwrap();
        let alone = Alone {
            connections: pool.connections().manager().clone(),
            channels: pool.manager().upper().clone(),
        };
        let suite = Conformance::new(alone);
        let suite = suite.kill(async |both: &mut Both| kill(&mut both.connection).await);
        let suite = match confirms {
            true => suite,
            false => suite.dirty(
                async |both: &mut Both| {
                    let options = ConfirmSelectOptions::default();
                    both.channel.confirm_select(options).await.unwrap();
                },
                async |both: &mut Both| both.channel.status().confirm(),
            ),
        };
        suite.run().await;
    }
}

/// Channels without a second pool: each on a connection of its own.
struct Alone {
    connections: Connections,
    channels: Channels,
}

struct Both {
    channel: Channel,
    connection: Arc<Connection>,
}

impl Manager for Alone {
    type Resource = Both;
    type Error = Error;

    async fn open(&self) -> Result<Both, Error> {
        let mut connection = self.connections.open().await?;
        let channel = self.channels.open(&mut connection).await?;
        Ok(Both {
            channel,
            connection,
        })
    }

    async fn check(&self, both: &mut Both) -> Result<(), Error> {
        let Both {
            channel,
            connection,
        } = both;
        self.channels.check(channel, connection).await
    }

    fn is_broken(&self, both: &mut Both, end: LeaseEnd) -> bool {
        let Both {
            channel,
            connection,
        } = both;
        self.connections.is_broken(connection, end)
            || self.channels.is_spent(channel, connection, end)
    }

    async fn close(&self, both: Both) -> Result<(), Error> {
        let Both {
            channel,
            mut connection,
        } = both;
        self.channels.close(channel, &mut connection).await?;
        self.connections.close(connection).await
    }
}
