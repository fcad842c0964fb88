//! The rules of a scope: it may hold its resource, allow one lease, and have a deadline.

use std::time::Duration;

use cenote::scope::{BindError, Bound, Scope};
use cenote::{AcquireError, Lease};
use cenote_testkit::clock::{now, settle, timed};
use cenote_testkit::{Call, Gate, Rig, cut};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_scope_that_holds_keeps_the_same_resource_until_it_ends() {
    let rig = Rig::with_max_size(3);

    let used = Scope::new().hold().run_and_end(async {
        let first = Lease::id(&rig.pool.bind().await.unwrap());
        assert_eq!(rig.pool.status().in_use, 1, "it rests in the scope");
        let second = Lease::id(&rig.pool.bind().await.unwrap());
        (first, second)
    });

    assert_eq!(used.await, (1, 1));
    let status = rig.pool.status();
    assert_eq!((status.acquired, status.idle), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_holds_replaces_a_resource_that_was_discarded() {
    let rig = Rig::with_max_size(1);

    let scope = Scope::new().hold().run_and_end(async {
        Bound::discard(rig.pool.bind().await.unwrap());
        Lease::id(&rig.pool.bind().await.unwrap())
    });

    assert_eq!(scope.await, 2);
}

#[tokio::test(start_paused = true)]
async fn with_one_lease_the_second_bind_waits_for_the_first() {
    let rig = Rig::with_max_size(3);

    Scope::new()
        .one_lease()
        .run_and_end(async {
            let first = rig.pool.bind().await.unwrap();
            assert!(!Bound::is_pinned(&first));
            let second = rig.pool.bind();
            let both = async { tokio::join!(second, async { drop(first) }).0 };
            drop(both.await.unwrap());
        })
        .await;

    assert_eq!(
        (rig.pool.status().total, rig.pool.status().acquired),
        (1, 2)
    );
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn with_one_lease_a_nested_bind_fails_and_names_the_line_of_the_first() {
    let rig = Rig::new(|pool| pool.max_size(3).acquire_timeout(SECOND));

    let (nested, took) = Scope::new()
        .one_lease()
        .run_and_end(async {
            let _first = rig.pool.bind().await.unwrap();
            timed(rig.pool.bind()).await
        })
        .await;

    let Err(BindError::InUse { site, .. }) = nested else {
        panic!("it was to fail: {nested:?}");
    };
    assert_eq!((site.file(), took), (file!(), SECOND));
}

#[tokio::test(start_paused = true)]
async fn with_one_lease_a_bind_that_is_still_acquiring_counts() {
    let rig = Rig::with_max_size(3);
    rig.backend.once(Call::Open, Gate::Slow(SECOND));

    Scope::new()
        .one_lease()
        .run_and_end(async {
            let (first, second) = tokio::join!(rig.pool.bind(), async {
                settle().await;
                rig.pool.bind_within(SECOND / 2).await
            });
            assert!(first.is_ok());
            assert!(matches!(second, Err(BindError::InUse { .. })));
        })
        .await;

    assert_eq!(rig.pool.status().total, 1);
}

#[tokio::test(start_paused = true)]
async fn with_one_lease_binds_are_served_in_order() {
    let rig = Rig::with_max_size(3);

    let order = Scope::new().one_lease().run_and_end(async {
        let order = std::sync::Mutex::new(Vec::new());
        let first = rig.pool.bind().await.unwrap();
        let one = |nth: u32| {
            let (order, pool) = (&order, &rig.pool);
            async move {
                let _bound = pool.bind().await.unwrap();
                order.lock().unwrap().push(nth);
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(one(1), one(2), one(3), async {
            settle().await;
            drop(first);
        });
        order.into_inner().unwrap()
    });

    assert_eq!(order.await, [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn with_one_lease_a_bind_that_fails_or_is_dropped_frees_the_seat() {
    for polls in 1..4 {
        let rig = Rig::with_max_size(1);
        rig.backend.once(Call::Open, Gate::Slow(SECOND));
        Scope::new()
            .one_lease()
            .run_and_end(async {
                let _ = cut(polls, rig.pool.bind()).await;
                assert!(rig.pool.bind().await.is_ok());
                rig.pool.breaker().trip();
                assert!(rig.pool.bind().await.is_err());
                rig.pool.breaker().reset();
                assert!(rig.pool.bind().await.is_ok());
            })
            .await;
        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_scope_with_one_lease_that_holds_uses_one_resource_for_everything() {
    let rig = Rig::with_max_size(3);

    Scope::new()
        .one_lease()
        .hold()
        .run_and_end(async {
            let binds = (0..8).map(|_| async { drop(rig.pool.bind().await.unwrap()) });
            let mut binds: Vec<_> = binds.map(Box::pin).collect();
            for bind in &mut binds {
                bind.await;
            }
        })
        .await;

    assert_eq!(rig.pool.status().acquired, 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_bind_has_a_limit_of_its_own() {
    let rig = Rig::with_max_size(1);
    let _held = rig.acquire().await;

    let (late, took) = timed(rig.pool.bind_within(SECOND)).await;
    assert!(matches!(
        late,
        Err(BindError::Acquire(AcquireError::TimedOut(_)))
    ));
    assert_eq!(took, SECOND);
    let (late, took) = timed(rig.pool.bind_by(now() + 2 * SECOND)).await;
    assert!(late.is_err());
    assert_eq!(took, 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_a_bind_covers_the_wait_for_the_scope_and_for_the_pool() {
    let rig = Rig::with_max_size(1);

    let scope = Scope::new().run_and_end(async {
        let mut first = rig.pool.bind().await.unwrap();
        Bound::pin(&mut first);
        let (second, _held) = tokio::join!(timed(rig.pool.bind_within(3 * SECOND)), async {
            tokio::time::sleep(SECOND).await;
            Bound::unpin(&mut first);
            let waiting = rig.wait();
            drop(first);
            waiting.await
        });
        second
    });

    let (late, took) = scope.await;
    assert!(matches!(
        late,
        Err(BindError::Acquire(AcquireError::TimedOut(_)))
    ));
    assert_eq!(took, 3 * SECOND, "not one more for the pool");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_scope_ends_every_bind_in_it() {
    let rig = Rig::with_max_size(1);
    let _held = rig.acquire().await;

    let late = Scope::new().deadline(now() + SECOND).run_and_end(async {
        let own = timed(rig.pool.bind()).await.1;
        let inner = cenote::scope(async { timed(rig.pool.bind()).await.1 }).await;
        (own, inner)
    });

    assert_eq!(late.await, (SECOND, Duration::ZERO), "it is over by then");
}

#[tokio::test(start_paused = true)]
async fn the_earlier_of_the_scopes_deadline_and_the_binds_own_limit_counts() {
    let rig = Rig::new(|pool| pool.max_size(1).acquire_timeout(2 * SECOND));
    let _held = rig.acquire().await;

    let took = Scope::new()
        .deadline(now() + 60 * SECOND)
        .run_and_end(async {
            let usual = timed(rig.pool.bind()).await.1;
            let own = timed(rig.pool.bind_within(SECOND)).await.1;
            (usual, own)
        });

    assert_eq!(took.await, (2 * SECOND, SECOND));
}
