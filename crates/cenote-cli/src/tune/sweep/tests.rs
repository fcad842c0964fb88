//! The sizes that are tried, and the knee.

use super::*;

/// Returns points by size and throughput.
pub(in crate::tune) fn points(of: &[(usize, f64)]) -> Vec<Point> {
    let point = |&(size, per_second)| Point {
        size,
        per_second,
        use_ms: 1.0,
        p99_ms: 1.0,
        noise: 0.01,
        client_busy: 0.2,
    };
    of.iter().map(point).collect()
}

#[test]
fn sizes_grow_up_to_the_largest() {
    assert_eq!(sizes(1), [1]);
    assert_eq!(sizes(2), [1, 2]);
    assert_eq!(sizes(20), [1, 2, 3, 4, 6, 8, 12, 16, 20]);
}

#[test]
fn the_knee_is_the_least_size_that_is_enough() {
    let points = points(&[(1, 10.0), (2, 20.0), (4, 39.0), (8, 40.0), (16, 35.0)]);

    assert_eq!(knee(&points), 4);
}
