//! A log for tests: the problems that a `ProblemLayer` reports.

use std::sync::mpsc::{Receiver, channel};

use cenote_tower::{Problem, ProblemLayer};

/// Returns a layer, and the channel that it sends its problems to.
pub(crate) fn reporting() -> (ProblemLayer, Receiver<Problem>) {
    let (tell, told) = channel();
    let layer = ProblemLayer::new().on_problem(move |problem| tell.send(problem.clone()).unwrap());
    (layer, told)
}
