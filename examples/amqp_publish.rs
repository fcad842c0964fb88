//! Run: cargo run -p cenote-examples --example amqp_publish
//!
//! How do many tasks publish to RabbitMQ, and how does one consume?

use std::error::Error;

use cenote_amqp::Pool;
use cenote_amqp::lapin::BasicProperties;
use cenote_amqp::lapin::options::{BasicAckOptions, BasicConsumeOptions, QueueDeclareOptions};
use cenote_amqp::lapin::types::{FieldTable, ShortString};
use futures_util::StreamExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = cenote_servers::rabbitmq::find()?;
    let pool = Pool::from_url(server.url())
        .name("orders")
        .max_size(5)
        .confirms(true)
        .build()?;

    // A consumer keeps its channel for long. The label says so wherever the holder is named.
    let channel = pool.acquire().await?;
    cenote::Lease::label(&channel, "consumer of orders");
    let queue = ShortString::from(format!("cenote-example-{}", std::process::id()));
    let options = QueueDeclareOptions {
        auto_delete: true,
        ..QueueDeclareOptions::default()
    };
    channel
        .queue_declare(queue.clone(), options, FieldTable::default())
        .await?;
    let (options, arguments) = (BasicConsumeOptions::default(), FieldTable::default());
    let mut consumer = channel
        .basic_consume(queue.clone(), "".into(), options, arguments)
        .await?;

    // Twenty tasks share the other four channels. A publish ends when the server has confirmed it.
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let (pool, queue) = (pool.clone(), queue.clone());
            tokio::spawn(async move {
                let channel = pool.acquire().await?;
                let order = format!("order {number}");
                let properties = BasicProperties::default();
                channel
                    .publish("", queue, order.as_bytes(), properties)
                    .await?;
                Ok::<_, Box<dyn Error + Send + Sync>>(())
            })
        })
        .collect();
    for task in tasks {
        task.await?.map_err(|error| error.to_string())?;
    }

    for _ in 0..20 {
        let delivery = consumer.next().await.ok_or("the consumer has ended")??;
        delivery.ack(BasicAckOptions::default()).await?;
    }
    let connections = pool.connections().status().opened;
    println!(
        "20 orders over {} channels on {connections} connection",
        pool.status().opened
    );
    assert!(pool.status().opened <= 5 && connections == 1);

    // A channel with a consumer is not lent again. It is closed, and the consumer ends.
    drop(channel);
    assert!(consumer.next().await.is_none_or(|last| last.is_err()));
    Ok(())
}
