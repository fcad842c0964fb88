//! Logs: the lines that a pool writes, and how to read them.
//!
//! There is nothing to call in this module. By default (feature `tracing`) a pool tells an operator
//! what matters by the facade of the crate `tracing`, with the target `cenote`. Every line has the
//! name of the pool as a field, and where it applies the line of code (`site`), a time (`waited`,
//! `held`, `took`) and the `cause`.
//!
//! | level | lines |
//! |---|---|
//! | WARN | `leak` (once per lease), `nested acquire` (tasks hold and wait in a circle), `acquire timed out` (with the full error), `slow acquire` (it has waited for `slow_acquire` and still waits), `opening failed`, `opening took longer than ..` or `opening panicked`, `closing failed`, `breaker tripped` |
//! | INFO | `warmed up` or `not warmed up`, `opens succeed again`, `breaker active`, `resized`, `pool closed`, `closed in order` or `closed with leftovers`, `returned after all` (a leak that came back) |
//! | DEBUG | `opened`, `closed` with its reason, `callback failed`, `breaker recovering` |
//!
//! **Storms.** There are three kinds of lines that can come in storms: failed opens, failed
//! callbacks, and acquires that are slow or time out. Each kind is written five times per second of
//! the clock and pool, so at most ten times in any second. The next line of the kind says how many
//! are missing. If there is none, a line of its own says so: soon, or when the pool closes.
//!
//! **Spans.** An acquire that has to wait has a span `acquire` with the fields `pool` and `site`.
//! Its parent is the span in which the acquire was first polled. The lines about the wait are
//! written in it. A trip that does not wait leaves no line and no span.
//!
//! **Cost.** A trip through the pool takes as many instructions as without the log. No lock of the
//! pool is held while a line is written. A subscriber that panics does no harm, and one that blocks
//! delays the task that writes the line. `default-features = false` leaves the log out; an
//! [`Observer`](crate::Observer) hears the events in either case.
//!
//! **Advice.** [`Pool::advice`](crate::Pool::advice) says what the numbers mean: `10 of 10 held by
//! src/orders.rs:88 for up to 12.4s: a leak or slow work`.
