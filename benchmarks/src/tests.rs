//! What holds for cenote whatever the machine does.

use cenote_benchmarks_harness::runtime::Runtime;

use crate::contender;

#[test]
fn cenote_weathers_the_storm() {
    let cenote = contender("cenote").unwrap();
    for runtime in Runtime::ALL {
        let figures = (cenote.storm)(runtime, 1);
        let figure = |name| figures.iter().find(|figure| figure.0 == name).unwrap().1;

        for must_be_zero in ["lost slots", "stuck waiters", "over max"] {
            assert_eq!(
                figure(must_be_zero),
                0.0,
                "{must_be_zero}, {}",
                runtime.name()
            );
        }
    }
}

#[test]
fn cenote_keeps_a_connect_that_its_caller_gave_up() {
    let cenote = contender("cenote").unwrap();

    let figures = (cenote.impatient)(Runtime::CurrentThread);

    assert!(figures.contains(&("connects", 1.0)), "{figures:?}");
}
