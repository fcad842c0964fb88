//! A suite for the author of a manager: it shows whether the manager keeps the promises that a pool
//! relies on.
//!
//! The suite opens, checks, cleans and closes resources of the manager, directly and through a
//! pool. The author says how a resource is killed, how it is made dirty, and how many resources the
//! backend has. A check whose closure is missing is left out.
//!
//! | check | promise |
//! |---|---|
//! | `opens` | a new resource passes `check` and is not broken |
//! | `detects death` | `is_broken` or `check` notices a killed resource, and only that one |
//! | `cleans` | `needs_cleaning` notices a dirty resource and `clean` cleans it, or it is broken |
//! | `survives cancellation` | each future may be dropped at each await, and `open` still works |
//! | `closes` | `close` ends, also on a killed resource, and nothing is left |
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicUsize, Ordering};
//! use cenote::{LeaseEnd, Manager};
//! use cenote_testkit::conformance::Conformance;
//!
//! struct Session {
//!     is_connected: bool,
//!     in_transaction: bool,
//!     count: Arc<AtomicUsize>,
//! }
//!
//! impl Drop for Session {
//!     fn drop(&mut self) {
//!         self.count.fetch_sub(1, Ordering::SeqCst);
//!     }
//! }
//!
//! #[derive(Default)]
//! struct Sessions(Arc<AtomicUsize>);
//!
//! impl Manager for Sessions {
//!     type Resource = Session;
//!     type Error = &'static str;
//!
//!     async fn open(&self) -> Result<Session, &'static str> {
//!         self.0.fetch_add(1, Ordering::SeqCst);
//!         Ok(Session { is_connected: true, in_transaction: false, count: self.0.clone() })
//!     }
//!
//!     async fn check(&self, session: &mut Session) -> Result<(), &'static str> {
//!         if session.is_connected { Ok(()) } else { Err("not connected") }
//!     }
//!
//!     fn needs_cleaning(&self, session: &mut Session) -> bool {
//!         session.in_transaction
//!     }
//!
//!     async fn clean(&self, session: &mut Session) -> Result<(), &'static str> {
//!         session.in_transaction = false;
//!         Ok(())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let sessions = Sessions::default();
//! let count = sessions.0.clone();
//! Conformance::new(sessions)
//!     .kill(async |session: &mut Session| session.is_connected = false)
//!     .dirty(
//!         async |session: &mut Session| session.in_transaction = true,
//!         async |session: &mut Session| session.in_transaction,
//!     )
//!     .count(async move || count.load(Ordering::SeqCst))
//!     .run()
//!     .await;
//! # }
//! ```

mod bench;
mod checks;
mod cutting;
mod failures;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use cenote::Manager;

use bench::Bench;
pub use cutting::cut;
pub use failures::{Failure, Failures};

/// A call on a real server takes milliseconds, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(10);

type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;
type OnResource<R, T> = Box<dyn for<'a> Fn(&'a mut R) -> Pending<'a, T>>;
type Count = Box<dyn Fn() -> Pending<'static, usize>>;

/// The suite for one manager. The [module](self) has an example.
///
/// It needs a runtime with a clock that runs by itself.
pub struct Conformance<M: Manager> {
    manager: M,
    limit: Duration,
    given: Given<M::Resource>,
}

/// What the author has said about the resources.
struct Given<R> {
    kill: Option<OnResource<R, ()>>,
    dirty: Option<Dirt<R>>,
    count: Option<Count>,
}

struct Dirt<R> {
    make: OnResource<R, ()>,
    is_there: OnResource<R, bool>,
}

impl<M: Manager<Resource: 'static> + 'static> Conformance<M> {
    /// Begins a suite for this manager.
    pub fn new(manager: M) -> Self {
        Self {
            manager,
            limit: LIMIT,
            given: Given {
                kill: None,
                dirty: None,
                count: None,
            },
        }
    }

    /// Says how the backend ends a resource, as a crash or an administrator would. The resource
    /// must be dead when the closure is done.
    pub fn kill(mut self, kill: impl AsyncFn(&mut M::Resource) + 'static) -> Self {
        self.given.kill = Some(on_resource(kill));
        self
    }

    /// Says how a resource is left in a state that its next user must not see, such as an open
    /// transaction, and how such a state is seen.
    pub fn dirty(
        mut self,
        make: impl AsyncFn(&mut M::Resource) + 'static,
        is_there: impl AsyncFn(&mut M::Resource) -> bool + 'static,
    ) -> Self {
        self.given.dirty = Some(Dirt {
            make: on_resource(make),
            is_there: on_resource(is_there),
        });
        self
    }

    /// Says how many resources of this manager the backend has. Other clients of the backend must
    /// not be part of the number.
    pub fn count(mut self, count: impl AsyncFn() -> usize + 'static) -> Self {
        let count = Rc::new(count);
        self.given.count = Some(Box::new(move || {
            let count = Rc::clone(&count);
            Box::pin(async move { count().await })
        }));
        self
    }

    /// Sets how long one call of the manager may take. Default 10 s.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs all checks.
    ///
    /// # Panics
    /// If a check fails. The text names all that have failed, and why. A panic of the manager goes
    /// through.
    ///
    /// # Cancel safety
    /// If the future is dropped midway, the remaining checks do not run.
    pub async fn run(self) {
        if let Err(failures) = self.try_run().await {
            panic!("{failures}");
        }
    }

    /// Runs all checks and returns those that have failed.
    ///
    /// # Cancel safety
    /// If the future is dropped midway, the remaining checks do not run.
    pub async fn try_run(self) -> Result<(), Failures> {
        let bench = Bench::new(self.manager, self.limit, self.given).await;
        let failures = checks::run(bench).await;
        if failures.is_empty() {
            Ok(())
        } else {
            Err(Failures(failures))
        }
    }
}

impl<M: Manager> fmt::Debug for Conformance<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conformance")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

fn on_resource<R: 'static, T>(call: impl AsyncFn(&mut R) -> T + 'static) -> OnResource<R, T> {
    let call = Rc::new(call);
    Box::new(move |resource| {
        let call = Rc::clone(&call);
        Box::pin(async move { call(resource).await })
    })
}
