//! Blocking calls of an r2d2 manager that hang or fail.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cenote::error::ErrorClass;
use cenote::{CloseReason, Lease, Manager, Pool};
use cenote_bridge::R2d2;

/// Wraps the error of the system, as drivers do.
#[derive(Debug)]
struct Wrapped(io::Error);

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the driver failed")
    }
}

impl Error for Wrapped {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

/// Opens at once. A check blocks until the test ends it.
struct Stuck(Mutex<Receiver<()>>);

impl r2d2::ManageConnection for Stuck {
    type Connection = ();
    type Error = Wrapped;

    fn connect(&self) -> Result<(), Wrapped> {
        Ok(())
    }

    fn is_valid(&self, (): &mut ()) -> Result<(), Wrapped> {
        let end = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(end.recv().is_err(), "the test has dropped its side");
        Ok(())
    }

    fn has_broken(&self, (): &mut ()) -> bool {
        false
    }
}

#[tokio::test]
async fn a_connection_whose_check_hangs_is_replaced() {
    let (end, ended) = channel();
    let pool = Pool::builder(R2d2::new(Stuck(Mutex::new(ended))))
        .max_size(1)
        .check_after_idle(Duration::ZERO)
        .check_timeout(Duration::from_millis(200));
    let pool = pool.build().unwrap();
    let lease = pool.acquire().await.unwrap();
    let first = Lease::id(&lease);
    drop(lease);

    let lease = pool.acquire().await.unwrap();

    assert_ne!(Lease::id(&lease), first);
    assert_eq!(pool.status().closes.by(CloseReason::FailedCheck), 1);
    drop(end); // lets the thread go, for which the runtime waits
}

#[test]
fn an_error_of_the_system_among_the_causes_gives_the_class() {
    let manager = R2d2::new(Stuck(Mutex::new(channel().1)));

    let refused = manager.classify(&Wrapped(io::ErrorKind::ConnectionRefused.into()));

    assert_eq!(refused, ErrorClass::Unreachable);
}
