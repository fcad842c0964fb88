//! Run: cargo run -p cenote-examples --example hello
//!
//! How do I pool something of my own?

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use cenote::{Lease, LeaseEnd, Manager, Pool};

/// The resource: a greeter here, a connection in your program.
struct Greeter {
    name: String,
    greeted: u32,
}

/// The manager: opens and closes greeters. Only `open` is required.
struct Greeters {
    hired: AtomicU32,
}

impl Manager for Greeters {
    type Resource = Greeter;
    type Error = io::Error;

    async fn open(&self) -> Result<Greeter, io::Error> {
        let number = self.hired.fetch_add(1, Ordering::Relaxed) + 1;
        let name = format!("greeter {number}");
        println!("{name} is hired");
        Ok(Greeter { name, greeted: 0 })
    }

    /// Asked when a lease ends, and before the next one begins. A broken resource is closed.
    fn is_broken(&self, greeter: &mut Greeter, _: LeaseEnd) -> bool {
        greeter.greeted >= 2
    }

    async fn close(&self, greeter: Greeter) -> Result<(), Self::Error> {
        println!("{} goes home", greeter.name);
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let manager = Greeters {
        hired: AtomicU32::new(0),
    };
    let pool = Pool::builder(manager)
        .name("greeters")
        .max_size(2)
        .build()?;

    for guest in ["Ada", "Grace", "Alan"] {
        let mut greeter = pool.acquire().await?;
        greeter.greeted += 1;
        let uses = Lease::uses(&greeter);
        println!("{} (use {uses}): hello, {guest}!", greeter.name);
        // The lease ends here, and the greeter goes back to the pool.
    }

    // The first greeter is broken after two greetings, so the third guest got another one.
    assert_eq!(pool.manager().hired.load(Ordering::Relaxed), 2);
    assert_eq!(pool.status().idle, 1);
    Ok(())
}
