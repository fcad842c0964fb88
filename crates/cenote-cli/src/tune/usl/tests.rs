//! The law is found again in numbers that it made.

use super::*;
use crate::tune::sweep::tests::points;

const SIZES: [usize; 8] = [1, 2, 4, 8, 12, 16, 24, 32];

fn made_by(law: Usl) -> Vec<Point> {
    let made = SIZES.map(|size| (size, law.predict(size)));
    points(&made)
}

#[track_caller]
fn assert_near(found: f64, expected: f64) {
    let off = (found - expected).abs();
    assert!(
        off <= expected.abs() * 1e-6 + 1e-9,
        "{found}, not {expected}"
    );
}

#[test]
fn a_law_is_found_again_with_its_peak() {
    let law = Usl {
        lambda: 1000.0,
        sigma: 0.05,
        kappa: 0.002,
        r_squared: 1.0,
    };

    let found = Usl::fit(&made_by(law)).unwrap();

    assert_near(found.lambda, law.lambda);
    assert_near(found.sigma, law.sigma);
    assert_near(found.kappa, law.kappa);
    assert_near(found.r_squared, 1.0);
    assert_near(found.peak().unwrap(), (0.95_f64 / 0.002).sqrt());
}

#[test]
fn a_server_that_scales_without_end_has_no_peak() {
    let found = Usl::fit(&points(&SIZES.map(|size| (size, 100.0 * size as f64)))).unwrap();

    assert_near(found.lambda, 100.0);
    assert!(found.sigma < 1e-6 && found.kappa < 1e-6, "{found:?}");
}

#[test]
fn costs_are_never_negative() {
    let faster_than_linear = SIZES.map(|size| (size, 100.0 * (size as f64).powf(1.2)));

    let found = Usl::fit(&points(&faster_than_linear)).unwrap();

    assert!(found.sigma >= 0.0 && found.kappa >= 0.0, "{found:?}");
}

#[test]
fn two_sizes_are_too_few() {
    assert_eq!(Usl::fit(&points(&[(1, 1.0), (2, 2.0)])), None);
}
