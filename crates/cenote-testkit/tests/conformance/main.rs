//! The conformance suite: a manager that keeps its promises passes, and one that breaks a promise
//! fails with the text for it.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod fake;
mod mutants;

use cenote_testkit::conformance::Conformance;

use fake::{Fake, Mistake};

#[tokio::test]
async fn a_manager_that_keeps_its_promises_passes() {
    let passed = fake::suite(Mistake::None).try_run().await;

    assert_eq!(passed, Ok(()));
}

#[tokio::test]
async fn a_manager_that_gives_up_dirty_resources_passes() {
    let passed = fake::suite(Mistake::GivesUpDirty).try_run().await;

    assert_eq!(passed, Ok(()), "a dirty resource may also be broken");
}

#[tokio::test]
async fn a_check_without_its_closure_is_left_out() {
    let deaf = Fake::new(Mistake::MissesDeath);

    let passed = Conformance::new(deaf).try_run().await;

    assert_eq!(passed, Ok(()), "no closure kills");
}

#[tokio::test]
#[should_panic(expected = "the manager breaks promises:\n- opens: `open` failed: refused")]
async fn a_run_panics_with_the_list() {
    fake::suite(Mistake::CannotOpen).run().await;
}
