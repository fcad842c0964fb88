//! Run: cargo run -p cenote-examples --example breaker
//!
//! How do I stop asking a backend that is down?

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote::breaker::{BreakerState, ConsecutiveFailures};
use cenote::event::BreakerChanged;
use cenote::{AcquireError, Observer, Pool};
use tokio::time::sleep;

/// A backend that can be down. It counts connection attempts.
#[derive(Default)]
struct Backend {
    up: AtomicBool,
    asked: AtomicU32,
}

impl Backend {
    async fn connect(self: Arc<Self>) -> Result<&'static str, io::Error> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.up.load(Ordering::Relaxed) {
            Ok("a connection")
        } else {
            Err(io::ErrorKind::ConnectionRefused.into())
        }
    }
}

/// Prints and records every state of the breaker.
#[derive(Default)]
struct States(Mutex<Vec<BreakerState>>);

impl Observer for States {
    fn breaker_changed(&self, event: &BreakerChanged<'_>) {
        println!("  the breaker: {} -> {}", event.from, event.to);
        self.0
            .lock()
            .expect("no holder of this lock panics")
            .push(event.to);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    use BreakerState::{Active, Inactive, Recovering};

    let backend = Arc::new(Backend::default());
    let states = Arc::new(States::default());
    let opener = Arc::clone(&backend);
    let pool = Pool::from_fn(move || Arc::clone(&opener).connect())
        .name("backend")
        // Three failures in a row trip the breaker. It tries one resource after about 100 ms, and
        // after each further failure later, up to a second.
        .breaker(
            ConsecutiveFailures::new(3)
                .recover_after(Duration::from_millis(100), Duration::from_secs(1)),
        )
        .observer(states.clone())
        .build()?;

    println!("the backend is down");
    for _ in 0..3 {
        let failed = pool.acquire().await.map(drop);
        assert!(matches!(failed, Err(AcquireError::Open { .. })));
    }
    assert_eq!(pool.breaker().state(), Inactive);

    let asked = backend.asked.load(Ordering::Relaxed);
    for _ in 0..1_000 {
        let refused = pool.acquire().await.map(drop);
        assert!(matches!(refused, Err(AcquireError::Unavailable(_))));
    }
    assert_eq!(backend.asked.load(Ordering::Relaxed), asked);
    println!("  1000 acquires failed at once, and the backend was not asked");

    println!("the backend is up");
    backend.up.store(true, Ordering::Relaxed);
    loop {
        match pool.acquire().await {
            Ok(connection) => {
                println!("  got {}", *connection);
                break;
            }
            Err(AcquireError::Unavailable(unavailable)) => {
                let rest = unavailable.retry_after;
                sleep(rest.unwrap_or(Duration::from_millis(10))).await;
            }
            Err(error) => return Err(error.into()),
        }
    }

    // The probe succeeded, so the pool lends again.
    let seen = states
        .0
        .lock()
        .expect("no holder of this lock panics")
        .clone();
    assert_eq!(seen, [Inactive, Recovering, Active]);
    Ok(())
}
