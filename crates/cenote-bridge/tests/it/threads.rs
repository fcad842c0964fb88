//! On which threads the calls of an r2d2 manager run.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use cenote::Pool;
use cenote_bridge::R2d2;

type Calls = Arc<Mutex<Vec<(&'static str, ThreadId)>>>;

fn note(calls: &Calls, call: &'static str) {
    calls.lock().unwrap().push((call, thread::current().id()));
}

struct Noted(Calls);

impl Drop for Noted {
    fn drop(&mut self) {
        note(&self.0, "drop");
    }
}

struct Noting(Calls);

impl r2d2::ManageConnection for Noting {
    type Connection = Noted;
    type Error = io::Error;

    fn connect(&self) -> io::Result<Noted> {
        note(&self.0, "connect");
        Ok(Noted(Arc::clone(&self.0)))
    }

    fn is_valid(&self, _: &mut Noted) -> io::Result<()> {
        note(&self.0, "is_valid");
        Ok(())
    }

    fn has_broken(&self, _: &mut Noted) -> bool {
        note(&self.0, "has_broken");
        false
    }
}

#[tokio::test]
async fn only_has_broken_runs_on_the_thread_of_the_caller() {
    let calls = Calls::default();
    let pool = Pool::builder(R2d2::new(Noting(Arc::clone(&calls))));
    let pool = pool.check_after_idle(Duration::ZERO).build().unwrap();

    drop(pool.acquire().await.unwrap());
    drop(pool.acquire().await.unwrap());
    pool.close_within(Duration::from_secs(10)).await;

    let here = thread::current().id();
    let calls = calls.lock().unwrap();
    for call in ["connect", "is_valid", "has_broken", "drop"] {
        let mut threads = calls
            .iter()
            .filter(|(name, _)| *name == call)
            .map(|(_, id)| *id);
        let on_caller = call == "has_broken";
        assert!(threads.clone().count() > 0, "{call} was called: {calls:?}");
        assert!(
            threads.all(|id| (id == here) == on_caller),
            "{call}: {calls:?}"
        );
    }
}
