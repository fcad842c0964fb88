//! Growth: a queue begins with few opens beside the open resources, and with all that may run once
//! returns will not serve it in time.

use std::time::Duration;

use cenote::Lease;
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, GatedManager, Rig, Waiting};

use crate::support::rigs::hold;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// As many leases are out as may be opened at once, so that a queue begins with two opens.
const OUT: usize = 8;

/// A pool of which `OUT` are leased, and whose opens took `took` so far. From now on opens hang.
async fn all_out(took: Duration) -> (Rig, Vec<Lease<GatedManager>>) {
    let rig = Rig::new(|pool| {
        pool.max_size(5 * OUT)
            .min_size(OUT)
            .max_opening(OUT)
            .max_lifetime(None)
            .open_timeout(None)
            .acquire_timeout(None)
    });
    rig.backend.always(Call::Open, Gate::Slow(took));
    rig.pool.warm().await.expect("the backend opens");
    let held = hold(&rig, OUT).await;
    rig.backend.always(Call::Open, Gate::Hang);
    (rig, held)
}

/// Adds `count` waiters. Returns them, and how many opens began since all resources were out.
async fn join(rig: &Rig, count: usize) -> (Vec<Waiting>, usize) {
    let line = (0..count).map(|_| rig.wait()).collect();
    settle().await;
    (line, rig.backend.calls(Call::Open) - OUT)
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_has_stood_for_as_long_as_an_open_takes_grows_the_pool() {
    let (rig, _held) = all_out(100 * MS).await;

    let (_line, at_first) = join(&rig, 3).await;
    advance(99 * MS).await;
    let (_fourth, just_before) = join(&rig, 1).await;
    advance(MS).await;
    let (_fifth, then) = join(&rig, 1).await;

    assert_eq!((at_first, just_before, then), (2, 2, 5));
}

#[tokio::test(start_paused = true)]
async fn a_queue_too_long_for_the_returns_grows_the_pool_before_an_open_would_be_done() {
    let (rig, _held) = all_out(100 * MS).await;

    let (_line, at_first) = join(&rig, 19).await;
    advance(39 * MS).await;
    let (_twentieth, just_before) = join(&rig, 1).await;
    advance(MS).await;
    // Twenty-one waiters for 40 ms: in 100 ms, more than eight returns can serve.
    let (_more, then) = join(&rig, 1).await;

    assert_eq!((at_first, just_before, then), (2, 2, OUT));
}

#[tokio::test(start_paused = true)]
async fn a_new_queue_begins_with_few_opens_however_long_the_last_one_stood() {
    let (rig, mut held) = all_out(100 * MS).await;
    let (mut line, first_line) = join(&rig, 1).await;
    advance(10 * MS).await;
    held.pop();
    held.push(line.pop().unwrap().await.unwrap());
    advance(SECOND / 2).await;

    let (_line, opens) = join(&rig, 5).await;

    assert_eq!((first_line, opens - first_line), (1, 1), "two at a time");
}

#[tokio::test(start_paused = true)]
async fn opens_that_hang_for_a_second_make_room_for_others() {
    let (rig, _held) = all_out(60 * SECOND).await;

    let (_line, at_first) = join(&rig, 3).await;
    advance(SECOND - MS).await;
    let (_fourth, just_before) = join(&rig, 1).await;
    advance(MS).await;
    let (_fifth, then) = join(&rig, 1).await;

    assert_eq!((at_first, just_before, then), (2, 2, 4));
}
