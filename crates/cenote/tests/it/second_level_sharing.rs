//! Several resources on one lease of the base.

use std::time::Duration;

use cenote::{CloseReason, Lease, Pool};
use cenote_testkit::clock::{advance, settle, timed};
use cenote_testkit::{Call, Gate};
use tokio::task::JoinSet;

use crate::support::two_levels::{
    Lines, UpperLease, UpperPool, assert_conserved, lines, on, upper,
};

const SECOND: Duration = Duration::from_secs(1);

async fn serial(pool: &UpperPool<Lines>) -> (UpperLease<Lines>, u64) {
    let mut stream = pool.acquire().await.expect("the pool has a stream");
    let serial = stream.base().serial;
    (stream, serial)
}

#[tokio::test(start_paused = true)]
async fn a_line_carries_so_many_streams_and_goes_back_with_the_last_one() {
    let (_, base) = lines(3);
    let (_, streams) = on(&base);
    let streams = streams
        .name("streams")
        .shared_by(2)
        .idle_timeout(10 * SECOND);
    let streams = streams.upkeep_interval(SECOND).build().unwrap();
    let (first, second) = (serial(&streams).await, serial(&streams).await);
    let third = serial(&streams).await;
    assert_eq!((first.1, second.1, third.1), (1, 1, 2));
    assert_eq!(base.leases()[1].label.as_deref(), Some("pool `streams`"));

    Lease::discard(first.0);
    settle().await;
    assert_eq!(base.status().in_use, 2, "one stream is left on it");
    Lease::discard(second.0);
    settle().await;
    assert_eq!((base.status().in_use, base.status().idle), (1, 1));

    drop(third);
    advance(60 * SECOND).await;
    assert_eq!((streams.status().total, base.status().in_use), (0, 0));
    assert_conserved(&base, streams).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_opened_on_the_line_with_the_fewest() {
    let (_, base) = lines(2);
    let (_, streams) = on(&base);
    let streams = streams.shared_by(3).max_size(6).build().unwrap();
    let mut open = Vec::new();
    for _ in 0..6 {
        open.push(serial(&streams).await);
    }
    let of_line = |open: &[(_, u64)], line| open.iter().filter(|it| it.1 == line).count();
    assert_eq!((of_line(&open, 1), of_line(&open, 2)), (3, 3));
    for line in [1, 2, 2] {
        let place = open.iter().position(|it| it.1 == line).unwrap();
        Lease::discard(open.swap_remove(place).0);
    }
    settle().await;

    open.push(serial(&streams).await);

    assert_eq!((of_line(&open, 1), of_line(&open, 2)), (2, 2));
    drop(open);
    assert_conserved(&base, streams).await;
}

#[tokio::test(start_paused = true)]
async fn opens_at_once_acquire_only_as_many_lines_as_they_need() {
    let (backend, base) = lines(10);
    backend.always(Call::Open, Gate::Slow(SECOND / 2));
    let (_, streams) = on(&base);
    let streams = streams
        .shared_by(4)
        .max_size(12)
        .max_opening(12)
        .build()
        .unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..12 {
        let streams = streams.clone();
        tasks.spawn(async move { streams.acquire().await.unwrap() });
    }

    let held = tasks.join_all().await;

    assert_eq!(held.len(), 12);
    assert_eq!((base.status().total, backend.peak()), (3, 3));
    drop(held);
    assert_conserved(&base, streams).await;
}

#[tokio::test(start_paused = true)]
async fn an_open_that_waits_for_the_base_takes_room_that_comes_free() {
    let (_, base) = lines(1);
    let (_, streams) = on(&base);
    let streams = streams.shared_by(1).build().unwrap();
    let held = streams.acquire().await.unwrap();
    let waiting = tokio::spawn({
        let streams = streams.clone();
        async move { streams.acquire().await }
    });
    settle().await;

    Lease::discard(held);

    assert!(waiting.await.unwrap().is_ok());
    assert_conserved(&base, streams).await;
}

#[tokio::test(start_paused = true)]
async fn if_the_open_that_acquires_is_dropped_another_one_acquires() {
    let (backend, base) = lines(1);
    let (_, streams) = on(&base);
    let streams = streams.shared_by(10).open_timeout(2 * SECOND);
    let streams = streams.acquire_timeout(60 * SECOND).build().unwrap();
    backend.once(Call::Open, Gate::Hang);
    let held = base.acquire_within(Duration::from_millis(10)).await;
    assert!(held.is_err(), "the base is held up");
    backend.heal();
    let tasks: Vec<_> = (0..3)
        .map(|_| {
            let streams = streams.clone();
            tokio::spawn(async move { streams.acquire().await.map(drop) })
        })
        .collect();
    advance(3 * SECOND).await;
    let first = tasks.iter().filter(|task| task.is_finished()).count();
    assert!(first > 0, "an open has timed out");

    advance(20 * SECOND).await;

    assert!(streams.acquire().await.is_ok());
    for task in tasks {
        let _ = task.await.unwrap();
    }
    assert_conserved(&base, streams).await;
}

#[tokio::test(start_paused = true)]
async fn no_stream_is_opened_on_a_line_that_is_broken_or_wanted_back() {
    for broken in [true, false] {
        let (_, base) = lines(2);
        let (_, streams) = on(&base);
        let streams = streams.shared_by(10).build().unwrap();
        let (mut held, before) = serial(&streams).await;
        if broken {
            held.base().breaks();
        } else {
            base.invalidate();
        }

        let (other, after) = serial(&streams).await;

        assert_ne!(before, after);
        assert_eq!(streams.status().open_failed, 0, "no caller meets it");
        drop(held);
        settle().await;
        let (own, below) = match broken {
            true => (CloseReason::Broken, CloseReason::Broken),
            false => (CloseReason::Refused, CloseReason::Invalidated),
        };
        assert_eq!(streams.status().closes.by(own), 1);
        assert_eq!(base.status().closes.by(below), 1);
        drop(other);
        assert_conserved(&base, streams).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_line_is_replaced_although_a_stream_on_it_is_held() {
    for full in [true, false] {
        let (backend, base) = lines(1);
        let (_, streams) = on(&base);
        let streams = streams
            .shared_by(if full { 1 } else { 10 })
            .build()
            .unwrap();
        let (mut held, before) = serial(&streams).await;
        held.base().breaks();

        let (other, after) = serial(&streams).await;

        assert_ne!(before, after);
        assert_eq!(base.status().closes.by(CloseReason::Broken), 1);
        assert_eq!(backend.alive(), 2, "the holder has its clone");
        drop((held, other));
        settle().await;
        assert_eq!(backend.alive(), 1);
        assert_conserved(&base, streams).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_open_spoils_the_line_for_the_others_too_unless_the_upper_says_no() {
    for spares in [false, true] {
        let (_, base) = lines(2);
        let (backend, upper) = upper(spares);
        let streams = Pool::on(&base, upper).shared_by(10).build().unwrap();
        let held = serial(&streams).await;
        backend.once(Call::Open, Gate::Fail);
        assert!(streams.acquire().await.is_err());

        drop(held);
        settle().await;

        let closes = base.status().closes.by(CloseReason::Discarded);
        assert_eq!(
            (closes, streams.status().idle),
            if spares { (0, 1) } else { (1, 0) }
        );
        assert_conserved(&base, streams).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_base_ends_and_every_caller_is_served_again() {
    let (backend, base) = lines(2);
    let (_, streams) = on(&base);
    let streams = streams.shared_by(3).max_size(6).build().unwrap();
    let (mut held, _) = serial(&streams).await;
    backend.always(Call::Open, Gate::Fail);
    held.base().breaks();
    drop(held);
    settle().await;
    let error = streams.acquire().await.unwrap_err();
    assert!(error.to_string().contains("refused Open"), "{error}");

    backend.heal();
    advance(10 * SECOND).await;
    let (stream, took) = timed(streams.acquire()).await;

    assert!(stream.is_ok() && took < SECOND, "{took:?}");
    drop(stream);
    assert_conserved(&base, streams).await;
}
