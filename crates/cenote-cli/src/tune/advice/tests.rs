//! The advice respects the server, and says when it is not sure.

use super::*;
use crate::tune::sweep::tests::points;

fn sweep() -> Sweep {
    Sweep {
        points: points(&[(1, 100.0), (2, 195.0), (4, 370.0), (8, 610.0), (16, 620.0)]),
        knee: 8,
        ends_early: false,
    }
}

const PLACES: Places = Places {
    all: 20,
    reserved: 3,
    others: 2,
};

#[test]
fn the_knee_is_the_size_if_the_server_has_the_places() {
    let advice = Advice::new("db".to_owned(), &sweep(), Some(PLACES), 1);

    assert_eq!(advice.max_size, 8);
    assert!(advice.to_text().contains("max_size = 8\n"));
}

#[test]
fn instances_that_share_the_server_get_their_part() {
    let advice = Advice::new("db".to_owned(), &sweep(), Some(PLACES), 3);

    assert_eq!((advice.max_size, advice.limit), (5, Some(5)));
    assert!(
        advice
            .to_text()
            .contains("the knee is at 8, but the server has only 5")
    );
}

#[test]
fn a_sweep_that_ends_early_is_not_sure() {
    let mut sweep = sweep();
    sweep.ends_early = true;

    let advice = Advice::new("db".to_owned(), &sweep, None, 1);

    assert_eq!(advice.sure, Sure::Low);
    assert!(advice.to_text().contains("raise `--max-size`"));
}

#[test]
fn measurements_that_disagree_are_not_sure() {
    let mut sweep = sweep();
    sweep.points.iter_mut().for_each(|point| point.noise = 0.3);

    assert_eq!(
        Advice::new("db".to_owned(), &sweep, None, 1).sure,
        Sure::Low
    );
}

#[test]
fn a_client_that_is_the_limit_is_said_and_lowers_the_confidence() {
    let mut sweep = sweep();
    sweep.points[4].client_busy = 0.97;

    let advice = Advice::new("db".to_owned(), &sweep, None, 1);

    assert_eq!(advice.sure, Sure::Low);
    let text = advice.to_text();
    assert!(
        text.contains("this program was busy for 97 % of the time"),
        "{text}"
    );
    assert!(text.contains("the server was not at its limit"), "{text}");
}

#[test]
fn a_client_that_waits_is_not_blamed() {
    let mut sweep = sweep();
    // Below the knee, it tells nothing about the limit.
    sweep.points[0].client_busy = 0.97;

    let advice = Advice::new("db".to_owned(), &sweep, None, 1);

    assert_eq!(advice.client_limit, None);
    assert_eq!(advice.sure, Sure::High);
}
