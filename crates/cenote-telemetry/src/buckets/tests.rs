//! Tests of the histogram.

use std::sync::Arc;
use std::thread;

use super::*;

#[test]
fn a_time_on_a_bound_is_within_it_and_a_longer_one_is_not() {
    for (index, bound) in BOUNDS.into_iter().enumerate() {
        let buckets = Buckets::default();
        buckets.record(bound);
        buckets.record(bound + Duration::from_nanos(1));

        let counts = buckets.cumulative();

        assert!(counts[..index].iter().all(|count| *count == 0));
        assert_eq!((counts[index], counts[index + 1]), (1, 2), "{bound:?}");
    }
}

#[test]
fn no_record_is_lost_between_threads() {
    let buckets = Arc::new(Buckets::default());
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let buckets = Arc::clone(&buckets);
            thread::spawn(move || {
                for micros in 0..1_000 {
                    buckets.record(Duration::from_micros(micros));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }

    assert_eq!(buckets.cumulative().last(), Some(&4_000));
    assert_eq!(buckets.total(), Duration::from_micros(4 * 499_500));
}

#[test]
fn a_time_beyond_all_bounds_is_counted() {
    let buckets = Buckets::default();
    buckets.record(Duration::from_secs(3_600));

    let counts = buckets.cumulative();

    assert_eq!((counts[BOUNDS.len() - 1], counts[BOUNDS.len()]), (0, 1));
}
