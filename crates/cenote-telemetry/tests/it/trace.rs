//! Recordings of real pools: what is in them, where they end, and what they must not do.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote::{Closures, Lease, Pool};
use cenote_telemetry::trace::{Outcome, Recorded, Stop, Trace};
use tempfile::tempdir;

fn pool(max_size: usize) -> Pool<Closures<()>> {
    let pool = Pool::from_fn(async || Ok::<_, &str>(()));
    let pool = pool.name("orders").max_size(max_size);
    pool.acquire_timeout(Some(Duration::from_millis(20)))
        .build()
        .unwrap()
}

/// A writer that the test reads.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    fn read(&self) -> Recorded {
        Recorded::read(&**self.0.lock().unwrap()).unwrap()
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A writer that waits for a word before it writes. Without a sender it fails, like a full disk.
struct Slow(Receiver<()>);

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .recv()
            .map_err(|_| io::Error::from(io::ErrorKind::StorageFull))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a writer that lets the first block pass, and the sender that lets more pass.
fn slow() -> (Slow, Sender<()>) {
    let (allow, allowed) = channel();
    allow.send(()).unwrap();
    (Slow(allowed), allow)
}

#[tokio::test]
async fn every_acquire_is_in_the_file_with_its_site_and_its_outcome() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("orders.trace");
    let pool = pool(1);
    let before = pool.acquire().await.unwrap();
    let recording = Trace::to_file(&file).start(&pool).unwrap();

    drop(before);
    let line = line!() + 1;
    let held = pool.acquire().await.unwrap();
    assert!(pool.acquire().await.is_err(), "the only one is out");
    let end = recording.end().unwrap();
    drop(held);

    let trace = Recorded::read(File::open(&file).unwrap()).unwrap();
    assert_eq!(trace.end, Some(end));
    assert_eq!((end.stop, end.lost, end.cancelled), (Stop::Asked, 0, 0));
    assert_eq!(trace.config.name.as_deref(), Some("orders"));
    assert_eq!((trace.config.max_size, trace.total), (1, 1));
    assert_eq!(
        trace.config.acquire_timeout,
        Some(Duration::from_millis(20))
    );
    let [first, timed_out, kept] = trace.visits[..] else {
        panic!("{:?}", trace.visits);
    };
    assert!(matches!(first.outcome, Outcome::Returned { .. }));
    assert_eq!((first.arrival, first.waited), Default::default());
    assert_eq!(timed_out.outcome, Outcome::TimedOut);
    assert!(timed_out.waited >= Duration::from_millis(20));
    assert_eq!(kept.outcome, Outcome::Kept);
    assert_eq!(trace.sites[kept.site], format!("{}:{line}", file!()));
}

#[tokio::test]
async fn opens_resizes_refusals_and_cancelled_waits_are_told() {
    let kept = Kept::default();
    let pool = pool(1);
    let recording = Trace::to_writer(kept.clone()).start(&pool).unwrap();

    let held = pool.acquire().await.unwrap();
    let wait = pool.acquire();
    tokio::select! {
        biased;
        _ = wait => panic!("the only one is out"),
        () = tokio::task::yield_now() => {}
    }
    Lease::detach(held);
    pool.resize(3).unwrap();
    pool.close();
    assert!(pool.acquire().await.is_err());
    let end = recording.end().unwrap();

    let trace = kept.read();
    assert_eq!((trace.opens.len(), &trace.resizes[..]), (1, &[3][..]));
    assert_eq!((end.cancelled, end.refused), (1, 1));
    assert_eq!(trace.visits[0].outcome, Outcome::Kept, "it was detached");
}

#[tokio::test]
async fn a_recording_ends_at_its_limit_and_says_so() {
    let kept = Kept::default();
    let pool = pool(1);
    let recording = Trace::to_writer(kept.clone()).limit(100_000);
    let recording = recording.start(&pool).unwrap();

    while recording.is_running() {
        drop(pool.acquire().await.unwrap());
    }

    assert_eq!(recording.end().unwrap().stop, Stop::Limit);
    let trace = kept.read();
    assert_eq!(trace.end.unwrap().stop, Stop::Limit);
    assert!(trace.visits.len() > 5_000, "{}", trace.visits.len());
    assert!(kept.0.lock().unwrap().len() <= 100_000);
}

#[tokio::test]
async fn a_slow_disk_loses_events_and_delays_no_caller() {
    let (slow, allow) = slow();
    let pool = pool(1);
    let recording = Trace::to_writer(slow).start(&pool).unwrap();

    // More than the queue takes while the disk stands still.
    for _ in 0..50_000 {
        drop(pool.acquire().await.unwrap());
    }
    for _ in 0..1_000 {
        allow.send(()).unwrap();
    }

    let end = recording.end().unwrap();
    assert!(end.lost > 0, "{end:?}");
}

#[tokio::test]
async fn a_full_disk_ends_the_recording_with_its_error() {
    let (slow, allow) = slow();
    let pool = pool(1);
    let recording = Trace::to_writer(slow).start(&pool).unwrap();

    drop(allow);
    drop(pool.acquire().await.unwrap());

    let error = recording.end().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    drop(pool.acquire().await.unwrap());
}

#[tokio::test]
async fn a_recording_ends_when_its_time_is_over_or_its_pool_is_gone() {
    let pool = pool(1);
    let short = Trace::to_writer(Kept::default()).lasting(Duration::ZERO);
    let short = short.start(&pool).unwrap();
    let long = Trace::to_writer(Kept::default()).start(&pool).unwrap();
    let ended = async |recording: &cenote_telemetry::trace::Recording| {
        while recording.is_running() {
            tokio::task::yield_now().await;
        }
    };

    ended(&short).await;
    drop(pool);
    ended(&long).await;

    assert_eq!(short.end().unwrap().stop, Stop::Time);
    assert_eq!(long.end().unwrap().stop, Stop::PoolGone);
}

#[tokio::test]
async fn a_file_that_cannot_be_made_is_one_line_with_its_name() {
    let error = Trace::to_file("/no/such/folder/orders.trace")
        .start(&pool(1))
        .unwrap_err();

    let text = error.to_string();
    assert!(
        text.starts_with("cannot write `/no/such/folder/orders.trace`: "),
        "{text}"
    );
}
