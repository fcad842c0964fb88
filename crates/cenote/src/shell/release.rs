//! The end of a lease whose caller waits until its resource is fit for the next use.

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::Pin;
use std::task::Poll;

use super::kind::Kind;
use super::pooled::Pooled;
use super::shared::PoolRef;
use crate::ledger::Manner;
use crate::manager::LeaseEnd;

/// Ends a lease, and does the work here that its resource needs.
pub(crate) async fn release<K: Kind>(pooled: Box<Pooled<K>>) {
    let left = pooled.end(LeaseEnd::Returned, Manner::Awaited);
    let Some((pool, work)) = left else { return };
    let job = work.map(|work| K::job(&pool, *work));
    let mut rest = Rest { job, pool };
    let mut yielded = false;
    poll_fn(|context| {
        // Out while it runs: a job that has panicked is not polled again.
        if let Some(mut job) = rest.job.take() {
            let poll = Pin::new(&mut job).poll(context);
            rest.job = Some(job).filter(|_| poll.is_pending());
            return poll;
        }
        // A runtime may run the waiter that was served on this thread only.
        if mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The work that is left. If it is dropped midway, a task of the pool goes on with it.
struct Rest<K: Kind> {
    job: Option<K::Job>,
    pool: PoolRef<K>,
}

impl<K: Kind> Drop for Rest<K> {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            K::go_on(&self.pool, job);
        }
    }
}
