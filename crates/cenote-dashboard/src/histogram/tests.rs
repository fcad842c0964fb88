//! How exact the percentiles are.

use std::time::Duration;

use super::{BUCKETS, Histogram, Percentiles, bucket, millis};

#[test]
fn a_percentile_is_right_to_a_sixteenth() {
    for shift in 0..36 {
        for micros in [1_u64 << shift, (1 << shift) + (1 << shift) / 3] {
            let shown = millis(bucket(micros)) * 1e3;

            let error = (shown - micros as f64).abs() / micros as f64;
            assert!(error <= 1.0 / 16.0, "{micros} is shown as {shown}");
        }
    }
    assert_eq!(bucket(u64::MAX), BUCKETS - 1);
}

#[test]
fn a_larger_time_is_never_in_a_smaller_bucket() {
    let mut last = 0;
    for micros in 0..100_000 {
        let next = bucket(micros);
        assert!(next == last || next == last + 1, "{micros}");
        last = next;
    }
}

#[test]
fn percentiles_are_those_of_the_time_between_two_readings() {
    let times = Histogram::default();
    times.record(Duration::from_secs(3_600));
    let before = times.read();
    assert_eq!(times.read().since(&before), None, "nothing was recorded");

    for micros in 1..=100 {
        times.record(Duration::from_micros(micros));
    }

    let Percentiles { p50, p95, p99 } = times.read().since(&before).unwrap();
    for (shown, right) in [(p50, 0.050), (p95, 0.095), (p99, 0.099)] {
        assert!((shown - right).abs() <= right / 16.0, "{shown} for {right}");
    }
}

#[test]
fn no_wait_at_all_is_zero() {
    let times = Histogram::default();
    let before = times.read();

    times.record(Duration::ZERO);

    assert_eq!(times.read().since(&before).unwrap().p99, 0.0);
}
