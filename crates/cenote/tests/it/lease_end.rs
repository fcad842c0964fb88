//! How a lease has ended: the manager is told, and `with` has a policy.

use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard};

use cenote::scope::Scope;
use cenote::{CloseReason, Lease, LeaseEnd, Manager, Pool, scope};
use cenote_testkit::cut;

use crate::support::rigs::bind_pinned_in;

/// Records how leases end. A resource is the end that its manager calls broken.
#[derive(Clone, Default)]
struct Ends {
    told: Arc<Mutex<Vec<LeaseEnd>>>,
    broken: Option<LeaseEnd>,
}

impl Manager for Ends {
    type Resource = ();
    type Error = String;

    async fn open(&self) -> Result<(), String> {
        Ok(())
    }

    fn is_broken(&self, (): &mut (), end: LeaseEnd) -> bool {
        self.lock().push(end);
        Some(end) == self.broken
    }
}

impl Ends {
    fn pool(&self) -> Pool<Self> {
        let pool = Pool::builder(self.clone()).build();
        pool.expect("the settings are valid")
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LeaseEnd>> {
        self.told.lock().expect("nothing panics while it is held")
    }

    /// The ends that were told, without the looks at idle resources.
    fn told(&self) -> Vec<LeaseEnd> {
        let told = self.lock();
        let ends = told.iter().filter(|end| **end != LeaseEnd::Idle);
        ends.copied().collect()
    }
}

fn closed(pool: &Pool<Ends>, reason: CloseReason) -> u64 {
    pool.status().closes.by(reason)
}

#[tokio::test]
async fn a_drop_and_a_release_are_returns() {
    let ends = Ends::default();
    let pool = ends.pool();

    drop(pool.acquire().await.unwrap());
    Lease::release(pool.acquire().await.unwrap()).await;

    assert_eq!(ends.told(), [LeaseEnd::Returned; 2]);
}

#[tokio::test]
async fn a_lease_that_a_panic_drops_is_unwinding() {
    let ends = Ends::default();
    let pool = ends.pool();
    let lease = pool.acquire().await.unwrap();

    let panicked = tokio::spawn(async move {
        let _lease = lease;
        panic!("a user's bug");
    });

    assert!(panicked.await.is_err());
    assert_eq!(ends.told(), [LeaseEnd::Unwinding]);
    assert_eq!(pool.status().idle, 1, "the manager did not mind");
}

#[tokio::test]
async fn a_manager_that_minds_an_end_closes_the_resource() {
    let ends = Ends {
        broken: Some(LeaseEnd::Cancelled),
        ..Ends::default()
    };
    let pool = ends.pool();

    let cancelled = cut(2, pool.with(async |()| pending::<()>().await)).await;

    assert!(cancelled.is_none());
    assert_eq!(ends.told(), [LeaseEnd::Cancelled]);
    assert_eq!(closed(&pool, CloseReason::Broken), 1);
}

#[tokio::test]
async fn a_panic_in_a_closure_discards_and_asks_nobody() {
    let ends = Ends::default();
    let pool = ends.pool();
    let own = pool.clone();

    let panicked = tokio::spawn(async move {
        let _ = own.with(async |()| panic!("in the closure")).await;
    });

    assert!(panicked.await.is_err());
    assert!(ends.told().is_empty());
    assert_eq!(closed(&pool, CloseReason::Discarded), 1);
}

#[tokio::test]
async fn an_error_of_a_closure_is_judged_by_the_manager() {
    for (broken, idle) in [(None, 1), (Some(LeaseEnd::Failed), 0)] {
        let ends = Ends {
            broken,
            ..Ends::default()
        };
        let pool = ends.pool();

        let failed = pool.try_with(async |()| Err::<(), _>("no")).await.unwrap();

        assert_eq!(failed, Err("no"));
        assert_eq!(
            (ends.told(), pool.status().idle),
            (vec![LeaseEnd::Failed], idle)
        );
    }
}

#[tokio::test]
async fn a_closure_that_succeeds_is_a_return() {
    let ends = Ends::default();
    let pool = ends.pool();

    let judge = |_: Option<&&str>| panic!("nothing is to be judged");
    let closure = async |_: &mut ()| Ok::<_, &str>(7);
    let seven = pool.try_with_judge(closure, judge).await.unwrap();

    assert_eq!((seven, ends.told()), (Ok(7), vec![LeaseEnd::Returned]));
}

#[tokio::test]
async fn a_judge_may_discard_after_an_error() {
    for (keep, told) in [(true, vec![LeaseEnd::Failed]), (false, vec![])] {
        let ends = Ends::default();
        let pool = ends.pool();

        let closure = async |_: &mut ()| Err::<(), _>(404);
        let judge = |error: Option<&i32>| {
            assert_eq!(error, Some(&404));
            keep
        };
        let failed = pool.try_with_judge(closure, judge).await.unwrap();

        assert_eq!((failed, ends.told()), (Err(404), told));
        assert_eq!(closed(&pool, CloseReason::Discarded), u64::from(!keep));
    }
}

#[tokio::test]
async fn a_judge_may_discard_after_a_cancellation() {
    for (keep, told) in [(true, vec![LeaseEnd::Cancelled]), (false, vec![])] {
        let ends = Ends::default();
        let pool = ends.pool();

        let closure = async |_: &mut ()| pending::<Result<(), i32>>().await;
        let judge = |error: Option<&i32>| {
            assert_eq!(error, None);
            keep
        };
        let cancelled = cut(2, pool.try_with_judge(closure, judge)).await;

        assert!(cancelled.is_none());
        assert_eq!(ends.told(), told);
        assert_eq!(closed(&pool, CloseReason::Discarded), u64::from(!keep));
    }
}

#[tokio::test]
async fn a_resource_that_is_about_to_be_lent_is_idle() {
    let ends = Ends::default();
    let pool = ends.pool();
    drop(pool.acquire().await.unwrap());
    ends.told.lock().unwrap().clear();

    let _lease = pool.acquire().await.unwrap();

    assert_eq!(*ends.told.lock().unwrap(), [LeaseEnd::Idle]);
}

#[tokio::test]
async fn a_scope_that_is_dropped_midway_cancels_the_leases_that_rest_in_it() {
    let ends = Ends::default();
    let pool = ends.pool();

    scope(async { drop(bind_pinned_in(&pool).await) }).await;
    let cancelled = cut(
        1,
        scope(async {
            drop(bind_pinned_in(&pool).await);
            pending::<()>().await;
        }),
    );
    assert!(cancelled.await.is_none());

    assert_eq!(ends.told(), [LeaseEnd::Returned, LeaseEnd::Cancelled]);
    assert!(Scope::current().is_none());
}
