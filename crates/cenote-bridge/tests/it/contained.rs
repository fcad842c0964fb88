//! Managers that panic and hang: the pool contains both, and serves on.

use std::future::pending;
use std::io;
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cenote::{AcquireError, Manager, OpenError, Pool};
use cenote_bridge::{Bb8, Deadpool, R2d2};
use deadpool::managed::{Metrics, RecycleResult};

/// A manager of all three kinds. Its first two opens misbehave, and then it opens numbers.
#[derive(Default)]
struct Wild {
    opens: AtomicUsize,
}

/// Longer than any good call of these tests takes, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(1);

/// Panics without a report, because a backtrace takes time.
fn wild() -> ! {
    panic::resume_unwind(Box::new("wild"))
}

impl bb8::ManageConnection for Wild {
    type Connection = usize;
    type Error = io::Error;

    async fn connect(&self) -> io::Result<usize> {
        match self.opens.fetch_add(1, SeqCst) {
            0 => wild(),
            1 => pending().await,
            number => Ok(number),
        }
    }

    async fn is_valid(&self, _: &mut usize) -> io::Result<()> {
        Ok(())
    }

    fn has_broken(&self, _: &mut usize) -> bool {
        false
    }
}

impl deadpool::managed::Manager for Wild {
    type Type = usize;
    type Error = io::Error;

    async fn create(&self) -> io::Result<usize> {
        bb8::ManageConnection::connect(self).await
    }

    async fn recycle(&self, _: &mut usize, _: &Metrics) -> RecycleResult<io::Error> {
        Ok(())
    }
}

/// The first open panics, the second blocks until the test ends it, and then it opens numbers.
struct WildBlocking {
    opens: AtomicUsize,
    end: Mutex<Receiver<()>>,
}

impl WildBlocking {
    fn new() -> (Sender<()>, Self) {
        let (end, ended) = channel();
        let wild = Self {
            opens: AtomicUsize::new(0),
            end: Mutex::new(ended),
        };
        (end, wild)
    }
}

impl r2d2::ManageConnection for WildBlocking {
    type Connection = usize;
    type Error = io::Error;

    fn connect(&self) -> io::Result<usize> {
        match self.opens.fetch_add(1, SeqCst) {
            0 => wild(),
            1 => {
                let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
                let ended = end.recv();
                assert!(ended.is_err(), "the test has dropped its side");
                Err(io::ErrorKind::TimedOut.into())
            }
            number => Ok(number),
        }
    }

    fn is_valid(&self, _: &mut usize) -> io::Result<()> {
        Ok(())
    }

    fn has_broken(&self, _: &mut usize) -> bool {
        false
    }
}

async fn is_contained<M: Manager + 'static>(manager: M) {
    let pool = Pool::builder(manager).max_size(1).open_timeout(LIMIT);
    let pool = pool.build().unwrap();

    let panicked = pool.acquire().await.err().unwrap();
    let hung = pool.acquire().await.err().unwrap();
    let served = pool.acquire().await;

    let open_error = |error| match error {
        AcquireError::Open { error, .. } => error,
        other => panic!("{other}"),
    };
    let (panicked, hung) = (open_error(panicked), open_error(hung));
    assert!(panicked.to_string().contains("wild"), "{panicked}");
    assert!(matches!(hung, OpenError::TimedOut { .. }), "{hung}");
    assert!(served.is_ok(), "no slot was lost");
}

#[tokio::test]
async fn a_bb8_manager_that_panics_and_hangs_is_contained() {
    is_contained(Bb8::new(Wild::default())).await;
}

#[tokio::test]
async fn a_deadpool_manager_that_panics_and_hangs_is_contained() {
    is_contained(Deadpool::new(Wild::default())).await;
}

#[tokio::test]
async fn an_r2d2_manager_that_panics_and_hangs_is_contained() {
    let (end, wild) = WildBlocking::new();

    is_contained(R2d2::new(wild)).await;

    drop(end); // lets the thread go, for which the runtime waits
}
