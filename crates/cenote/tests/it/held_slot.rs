//! A slot whose resource was taken out: it counts like a lease, and is not mistaken for a leak or
//! for a holder that waits.

use std::time::Duration;

use cenote::config::Nested;
use cenote::{AcquireError, Lease};
use cenote_testkit::Rig;
use cenote_testkit::clock::{advance, settle};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn a_held_slot_counts_against_the_cap_until_it_is_dropped() {
    let rig = Rig::with_max_size(2);
    let (resource, slot) = Lease::hold_slot(rig.acquire().await);
    let _other = rig.acquire().await;
    slot.label("elsewhere");

    let refused = rig.pool.acquire_within(Duration::from_millis(5)).await;
    let Err(AcquireError::TimedOut(seen)) = refused else {
        panic!("a held slot was lent");
    };
    let waiter = rig.wait();
    settle().await;
    assert_eq!(rig.pool.status().in_use, 2);
    let labels = seen.holders().iter().map(|holder| holder.label.as_deref());
    assert!(labels.collect::<Vec<_>>().contains(&Some("elsewhere")));
    drop(slot);

    let lease = waiter.await.unwrap();
    assert_ne!(Lease::id(&lease), 1, "the resource has left the pool");
    assert_eq!(rig.pool.status().detached, 1);
    drop(resource);
}

#[tokio::test(start_paused = true)]
async fn a_held_slot_is_no_leak() {
    let rig = Rig::new(|pool| {
        pool.leak_after(Duration::from_secs(47))
            .upkeep_interval(HOUR)
    });
    let (_resource, slot) = Lease::hold_slot(rig.acquire().await);

    advance(HOUR).await;

    assert_eq!(rig.pool.status().leaked, 0);
    drop(slot);
    let held = rig.acquire().await;
    advance(HOUR).await;
    assert_eq!(rig.pool.status().leaked, 1, "the next lease can leak");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn the_task_that_holds_a_slot_may_acquire_where_nesting_is_denied() {
    let rig = Rig::new(|pool| pool.max_size(2).nested(Nested::Deny));
    let task = tokio::spawn({
        let pool = rig.pool.clone();
        async move {
            let held = Lease::hold_slot(pool.acquire().await?);
            let lease = pool.acquire().await?;
            assert_eq!(pool.leases().len(), 2);
            drop((held, lease));
            Ok::<_, AcquireError<_>>(())
        }
    });

    task.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_held_slot_knows_that_its_pool_was_closed_and_holds_up_the_drain() {
    let rig = Rig::with_max_size(1);
    let (_resource, slot) = Lease::hold_slot(rig.acquire().await);
    let told = tokio::spawn(async move {
        slot.pool_closed().await;
        slot
    });
    settle().await;
    assert!(!told.is_finished());

    let left = rig.pool.close_within(Duration::from_secs(1)).await;
    assert_eq!(left.leases.len(), 1, "{left}");
    drop(told.await.unwrap());

    assert!(
        rig.pool
            .close_within(Duration::from_secs(1))
            .await
            .is_empty()
    );
}
