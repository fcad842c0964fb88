//! Run: cargo run -p cenote-examples --example actor
//!
//! How does an actor keep its resource while it is busy, and give it back when it is idle?

use std::error::Error;
use std::time::Duration;

use cenote::{Closures, Lease, Pool};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

type Sessions = Pool<Closures<Vec<u32>>>;

/// After this long without a message the actor does not keep its session any longer.
const IDLE: Duration = Duration::from_millis(50);

/// Adds numbers up in its session. It ends when all senders are gone.
async fn actor(pool: Sessions, mut inbox: mpsc::Receiver<u32>) {
    let mut session: Option<Lease<_>> = None;
    loop {
        let message = match &session {
            Some(_) => timeout(IDLE, inbox.recv()).await,
            None => Ok(inbox.recv().await),
        };
        match message {
            // Nothing came for a while: other actors may have the session.
            Err(_) => session = None,
            Ok(None) => return,
            Ok(Some(number)) => {
                let mut own = match session.take() {
                    Some(own) => own,
                    None => match pool.acquire().await {
                        Ok(own) => own,
                        Err(error) => return eprintln!("the actor stops: {error}"),
                    },
                };
                own.push(number);
                session = Some(own);
            }
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let pool = Pool::from_fn(async || Ok::<_, std::io::Error>(Vec::new()));
    let pool = pool.max_size(2).build()?;
    let actors: Vec<_> = (0..20)
        .map(|_| {
            let (outbox, inbox) = mpsc::channel(8);
            (outbox, tokio::spawn(actor(pool.clone(), inbox)))
        })
        .collect();

    // Twenty actors share two sessions, because few of them are busy at a time.
    for (nth, (outbox, _)) in actors.iter().enumerate() {
        for number in 0..5 {
            outbox.send(number).await?;
        }
        tokio::task::yield_now().await;
        println!(
            "actor {nth} got five messages; {} sessions are in use",
            pool.status().in_use
        );
        if nth % 2 == 1 {
            sleep(2 * IDLE).await;
        }
    }
    sleep(2 * IDLE).await;

    let status = pool.status();
    println!(
        "{} leases served 100 messages; {} are out now",
        status.acquired, status.in_use
    );
    assert_eq!(
        (status.acquired, status.in_use),
        (20, 0),
        "one lease for each busy time"
    );
    for (outbox, running) in actors {
        drop(outbox);
        running.await?;
    }
    Ok(())
}
