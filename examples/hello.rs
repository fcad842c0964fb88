//! How do I pool something of my own? Run: cargo run -p cenote-examples --example hello

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use cenote::{Lease, Manager, Pool};

/// What is pooled: here a greeter, in your program a connection.
struct Greeter {
    name: String,
    greeted: u32,
}

/// Knows how a greeter is made, and how it goes. Only `open` is required.
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

    /// Asked on every return: a tired greeter does not go back to the pool.
    fn is_broken(&self, greeter: &mut Greeter) -> bool {
        greeter.greeted >= 2
    }

    async fn close(&self, greeter: Greeter) {
        println!("{} goes home", greeter.name);
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
        // The lease ends here, and the greeter goes back.
    }

    // The first one greeted twice, so the third guest met another.
    assert_eq!(pool.manager().hired.load(Ordering::Relaxed), 2);
    assert_eq!(pool.status().idle, 1);
    Ok(())
}
