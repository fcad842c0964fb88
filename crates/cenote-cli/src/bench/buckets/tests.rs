//! Every operation is in one step.

use super::*;

#[test]
fn the_parts_add_up_to_all_operations() {
    let mut times = Histogram::new(2).unwrap();
    for micros in [1, 3, 900, 1_100, 40_000] {
        times.record(micros * 1_000).unwrap();
    }

    let buckets = buckets(&times);

    let sum: f64 = buckets.iter().map(|bucket| bucket.part).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{buckets:?}");
    assert_eq!(buckets.first().unwrap().up_to, Duration::from_micros(2));
    assert_eq!(buckets.last().unwrap().up_to, Duration::from_millis(50));
}

#[test]
fn no_operations_have_no_steps() {
    assert!(buckets(&Histogram::new(2).unwrap()).is_empty());
}
