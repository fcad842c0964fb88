//! The figures of several processes become one line.

use serde_json::Value;

use super::{combined, to_text};
use crate::harness::bounded::Trouble;
use crate::harness::results::Line;

/// Returns the lines of one process, as the process that started it reads them.
fn share(outcome: Result<[f64; 4], Trouble>) -> Value {
    let line = Line {
        scenario: "S2b",
        runtime: "2 workers",
        pool: "cenote",
        outcome: outcome.map(|[ns, least, cores, quiet]| {
            vec![
                ("ns", ns),
                ("ns min", least),
                ("cores", cores),
                ("quiet rounds", quiet),
            ]
        }),
    };
    serde_json::from_str(&to_text(&[line])).unwrap()
}

#[test]
fn one_odd_process_does_not_decide_a_figure() {
    let shares = [
        [17.0, 16.0, 2.0, 7.0],
        [60.0, 15.0, 1.0, 3.0],
        [18.0, 17.0, 2.0, 7.0],
    ];
    let shares = shares.map(|figures| share(Ok(figures)));

    let figures = combined(&shares, "2 workers", "cenote").unwrap();

    let expected = [
        ("ns", 18.0),
        ("ns min", 15.0),
        ("cores", 2.0),
        ("quiet rounds", 17.0),
    ];
    assert_eq!(figures, expected);
}

#[test]
fn a_pool_that_fails_in_one_process_has_no_figure() {
    for trouble in [Trouble::Hangs, Trouble::Fails("no reply".to_owned())] {
        let shares = [
            share(Ok([17.0, 16.0, 2.0, 7.0])),
            share(Err(trouble.clone())),
        ];

        let figures = combined(&shares, "2 workers", "cenote");

        assert_eq!(figures, Err(trouble));
    }
}
