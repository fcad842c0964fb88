//! Pools that belong to one thread: for resources that are not `Send`, and for servers that have a
//! worker per core.
//!
//! A [`LocalPool`] has the methods and the promises of a [`Pool`](crate::Pool), because the same
//! code decides: fairness, deadlines, growth, checks, cleaning, lifetime, leak reports, the
//! breaker, errors with holders and their lines of code. It has no lock and no atomic count. An
//! acquire and a return are only about a tenth cheaper than in a `Pool`: both pools keep the same
//! books on every lease, and read the clock twice for them.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::cell::RefCell;
//! use std::rc::Rc;
//! use cenote::local::LocalPool;
//! use tokio::task::LocalSet;
//!
//! LocalSet::new().run_until(async {
//!     let open = async || Ok::<_, &str>(Rc::new(RefCell::new(0)));
//!     let pool = LocalPool::from_fn(open).max_size(2).build()?;
//!     let counter = pool.acquire().await?;
//!     *counter.borrow_mut() += 1;
//!     drop(counter);
//!     assert_eq!(*pool.acquire().await?.borrow(), 1, "it was lent again");
//!     Ok(())
//! }).await
//! # }
//! ```
//!
//! # The `LocalSet`
//! The pool's tasks run in the tokio `LocalSet` of the first caller that awaits an acquire, or in
//! its `LocalRuntime`; actix has one per worker. If that set is dropped, the next such caller
//! starts the tasks again in its own. Without a set, an acquire fails with
//! [`AcquireError::NoLocalSet`](crate::AcquireError::NoLocalSet).
//!
//! A plain function, such as `try_acquire` or `resize`, and the drop of a lease, may be called
//! outside of the set. They start no task: the work that follows is done by the tasks that run, or
//! by the next acquire.
//!
//! # One pool per worker
//! [`Config::divide`](crate::Config::divide) divides the settings of one pool over the workers, so
//! that all of them together have the size that the backend allows.
//!
//! # What is missing
//! - `acquire_blocking`: the tasks that it would wait for run on the thread that it would block.
//! - The [registry](crate::registry), and so the live page and exporters that find pools there: a
//!   pool of one thread cannot be asked by another. Its observers can be shared by all threads.
//! - [Scopes](crate::scope()) and `must_stay`, permits, `hold_slot`, the annex and shared breakers:
//!   few users of one thread want them.
//!
//! # Coming from
//! What changes without a compile error:
//! - *from [`Pool`](crate::Pool)*: an acquire outside of a `LocalSet` is an error. `try_acquire`
//!   finds nothing before the first acquire or `warm`. Waiters have tokio timers, which need a
//!   runtime with `enable_time`. The pool is not in the registry. A limit such as `max_size` counts
//!   per thread: divide it.
//! - *from `Rc<RefCell<Vec<_>>>`*: a caller that finds nothing waits in a queue for five seconds by
//!   default. A resource that was idle for five seconds is checked first, one of 30 minutes is
//!   closed, and one that was unused for five minutes is closed, too. A leak is reported.
//! - *from `deadpool::unmanaged` and other pools without a factory*: the same, and the pool opens
//!   its resources. There is no `add`. A resource that is taken out (`LocalLease::detach`) makes
//!   room for another open.

mod local_builder;
mod local_closures;
mod local_control;
mod local_lease;
mod local_pool;
mod one_thread;

pub use crate::local_manager::LocalManager;
pub use local_builder::LocalBuilder;
pub use local_closures::LocalClosures;
pub use local_control::LocalBreaker;
pub use local_lease::LocalLease;
pub use local_pool::{LocalPool, WeakLocalPool};
