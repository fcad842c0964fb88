//! The points, the patterns and the stretches that count.

use super::{POINTS, Stretch, is_noisy, quiet_nanos};
use crate::harness::runtime::Runtime;

#[test]
fn at_every_point_each_task_finds_a_resource_that_is_not_out() {
    for (runtime, points) in POINTS {
        let tasks = if runtime == Runtime::CurrentThread {
            1
        } else {
            2
        };
        for point in points {
            assert!(point.out(tasks) + tasks <= point.size, "{}", point.name);
        }
    }
}

#[test]
fn points_of_one_runtime_differ() {
    for (_, points) in POINTS {
        let mut outs: Vec<_> = points
            .iter()
            .map(|point| (point.size, point.out(1)))
            .collect();
        outs.dedup();
        assert_eq!(outs.len(), points.len());
    }
}

fn stretch(nanos: f64, noise: f64) -> Stretch {
    Stretch {
        name: "same",
        nanos,
        noise,
    }
}

#[test]
fn noisy_stretches_do_not_count() {
    let stretches = vec![
        stretch(900.0, 0.5),
        stretch(30.0, 0.0),
        stretch(800.0, 0.2),
        stretch(32.0, 0.01),
    ];

    assert_eq!(quiet_nanos(stretches), 31.0);
}

#[test]
fn the_quietest_quarter_counts_where_all_are_noisy() {
    let noisy = [0.5, 0.1, 0.9, 0.3, 0.2];
    let stretches = noisy.map(|noise| stretch(1000.0 * noise, noise));

    assert_eq!(quiet_nanos(stretches.to_vec()), 150.0);
}

#[test]
fn rounds_are_noisy_if_most_of_them_were() {
    let (quiet, noisy) = (vec![stretch(30.0, 0.0)], vec![stretch(30.0, 0.2)]);

    assert!(!is_noisy(&[quiet.clone(), noisy.clone()]));
    assert!(is_noisy(&[quiet, noisy.clone(), noisy]));
}
