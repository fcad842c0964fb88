//! Which threads and tasks exist, when they start, what they cost and how they end.
//!
//! A pool that is built and not used has none.
//!
//! # Tasks
//!
//! They run on the tokio runtime of the caller that starts them. A caller without one uses the
//! thread `cenote`, see below.
//!
//! - **The upkeep task**, one per pool, or one for all pools of a
//!   [`SharedUpkeep`](crate::SharedUpkeep): eviction, lifetime, heartbeat, refill, leak reports,
//!   recovery of the breaker. The first acquire or reservation starts it, and so do `warm`,
//!   `close_within`, and a change of the breaker by hand. It sleeps until something is due, at most
//!   for `upkeep_interval`. It does not keep the pool alive, and ends when the last handle and the
//!   last lease of its last pool are gone. If its runtime shuts down, the next caller starts it
//!   again. If its runtime is no longer driven, a caller on another runtime takes its place a
//!   second after it should have run.
//! - **One task per piece of work**: an open (with its retries), a check with the hook before an
//!   acquire, a clean with the hook after a lease, a close. There is at most one for each slot, so
//!   at most `max_size` in all. It ends with its callback, or at the time limit of the callback. A
//!   resource that comes back good needs no such task. [`Lease::release`] does the work of a return
//!   in the caller's own future.
//! - **One empty task per runtime** that a resource was opened or checked on, for all pools
//!   together. It is never woken and ends with its runtime. So a pool learns that the runtime of a
//!   resource is gone, and checks that resource before it lends it.
//!
//! A [`LocalPool`](crate::local::LocalPool) has the same tasks in its `LocalSet`, timers for its
//! waiters, and no thread.
//!
//! Dropping a lease or a pool starts no task. If it leaves work behind, a waiter, the upkeep task
//! or the next caller starts it.
//!
//! # Threads
//!
//! - **`cenote-alarm`**, one per process, for all pools: about a millisecond after a deadline it
//!   times out the acquire, and wakes its task. The first acquire that has to wait starts it, if
//!   only for an open. It sleeps while no caller waits. While callers wait, it wakes at deadlines,
//!   and once a second for each of their pools. It runs no code of the user except wakers. It lives
//!   as long as the process. If it cannot be started, each waiter has a timer of its own.
//! - **`cenote`**, one per process: a tokio runtime for callers that have none. It is started when
//!   work has to be done for such a caller: for `acquire_blocking` on a plain thread, and for
//!   `acquire` on another executor. It also provides timers where the caller's runtime has none.
//!   It lives as long as the process.
//! - **`cenote-end`** lives for a moment. If a pool ends while `cenote-alarm` looks at it, this
//!   thread drops the manager, because that may take long.
//!
//! Each has a stack of the default size of the standard library, and uses no processor while it
//! sleeps. A pool whose time is paused by tokio, as in tests, does not use `cenote-alarm`.
//!
//! # Runtimes without timers
//!
//! A tokio runtime without `enable_time` is enough. Tokio tells this only by a panic; the pool
//! catches it once per runtime, and the panic hook of the process may print it.
//!
//! ```
//! use std::time::Duration;
//! use cenote::Pool;
//!
//! let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! let pool = Pool::from_fn(async || Ok::<_, &str>(())).max_size(1).build()?;
//! runtime.block_on(async {
//!     let _held = pool.acquire().await.expect("one is free");
//!     assert!(pool.acquire_within(Duration::from_millis(5)).await.is_err());
//! });
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # After a fork
//!
//! A forked process has none of these threads, and no runtime. In the child, `cenote-alarm` and
//! `cenote` are started again when they are needed, and timeouts and opens work on a new runtime.
//! But the resources that were opened before are shared with the parent, and closing them in the
//! child may end the parent's sessions. So build pools after the fork.
//!
//! [`Lease::release`]: crate::Lease::release
