//! The statistics, on values small enough to check by hand.

use super::{Fairness, maximum, median, minimum, percentile};

#[test]
fn the_median_is_the_one_in_the_middle_whatever_the_order() {
    assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
}

#[test]
fn the_median_of_an_even_number_is_the_mean_of_two() {
    assert_eq!(median(&[4.0, 1.0, 100.0, 2.0]), Some(3.0));
}

#[test]
fn nothing_has_no_statistics() {
    assert_eq!(median(&[]), None);
    assert_eq!(minimum(&[]), None);
    assert_eq!(maximum(&[]), None);
    assert_eq!(percentile(&[], 0.5), None);
}

#[test]
fn least_and_greatest_are_found_in_any_order() {
    assert_eq!(minimum(&[3.0, 1.0, 2.0]), Some(1.0));
    assert_eq!(maximum(&[3.0, 1.0, 2.0]), Some(3.0));
}

#[test]
fn a_percentile_is_not_exceeded_by_that_part() {
    let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
    assert_eq!(percentile(&hundred, 0.5), Some(50.0));
    assert_eq!(percentile(&hundred, 0.99), Some(99.0));
    assert_eq!(percentile(&hundred, 1.0), Some(100.0));
    assert_eq!(percentile(&hundred, 0.0), Some(1.0));
}

#[test]
fn equal_shares_are_fair() {
    let fair = Fairness::of(&[7, 7, 7]);
    assert_eq!(fair.max_to_min, 1.0);
    assert_eq!(fair.starved, 0);
}

#[test]
fn an_unfair_share_shows_in_max_to_min() {
    let unfair = Fairness::of(&[30, 10, 20]);
    assert_eq!(unfair.max_to_min, 3.0);
    assert_eq!(unfair.starved, 0);
}

#[test]
fn a_task_below_a_tenth_of_its_share_is_starved() {
    let unfair = Fairness::of(&[100, 100, 6, 0]);
    assert_eq!(unfair.max_to_min, f64::INFINITY);
    assert_eq!(
        unfair.starved, 1,
        "6 of a share of 51.5 is more than a tenth"
    );
    assert_eq!(Fairness::of(&[100, 100, 5, 0]).starved, 2);
}
