//! The combination of rounds.

use super::{PARTS, with_spread};

#[test]
fn figures_are_medians_and_the_spread_is_that_of_the_first() {
    let round = |throughput, p99| vec![("kops/s", throughput), ("p99 µs", p99)];

    let figures = with_spread(&[round(10.0, 7.0), round(12.5, 1.0), round(11.25, 3.0)]);

    let spread = 100.0 * 2.5 / 11.25;
    assert_eq!(
        figures,
        [("kops/s", 11.25), ("p99 µs", 3.0), ("spread %", spread)]
    );
}

#[test]
fn each_part_says_how_many_tasks_it_has() {
    for (_, tasks, name) in PARTS.iter().flat_map(|(_, parts)| *parts) {
        let said = name.rsplit_once(", ").unwrap().1;
        let plural = if *tasks == 1 { "task" } else { "tasks" };
        assert_eq!(said, format!("{tasks} {plural}"));
    }
}
