//! Each mistake of a manager fails the suite with the text for it.

use super::fake::{Mistake, suite};

async fn fails(mistake: Mistake, check: &str, text: &str) {
    let failures = suite(mistake).try_run().await.unwrap_err();

    let named = failures
        .iter()
        .any(|it| it.check == check && it.text.starts_with(text));
    assert!(
        named,
        "{mistake:?} is to fail `{check}` with `{text}`, and not:\n{failures}"
    );
}

macro_rules! mutants {
    ($($name:ident: $mistake:ident fails $check:literal with $text:literal;)*) => {$(
        #[tokio::test]
        async fn $name() {
            fails(Mistake::$mistake, $check, $text).await;
        }
    )*};
}

mutants! {
    an_open_that_fails_is_found: CannotOpen
        fails "opens" with "`open` failed: refused";
    an_open_that_hangs_is_found: OpensForever
        fails "opens" with "`open` has not ended within 200ms";
    a_check_that_refuses_a_new_resource_is_found: RefusesNew
        fails "opens" with "`check` refuses a new resource: not fit";
    a_new_resource_that_is_broken_is_found: CondemnsNew
        fails "opens" with "`is_broken` condemns a new resource";
    a_death_that_goes_unnoticed_is_found: MissesDeath
        fails "detects death" with "neither `is_broken` nor `check` notices a killed resource";
    a_check_that_hangs_on_a_dead_resource_is_found: HangsOnDeath
        fails "detects death" with "`check` of a killed resource has not ended within 200ms";
    a_death_that_condemns_others_is_found: CondemnsOthers
        fails "detects death" with "`check` refuses a resource beside a killed one: not fit";
    dirt_that_goes_unnoticed_is_found: MissesDirt
        fails "cleans" with "neither `needs_cleaning` nor `is_broken` notices a dirty resource";
    a_clean_that_leaves_dirt_is_found: LeavesDirt
        fails "cleans" with "`clean` leaves a resource dirty";
    a_clean_that_fails_is_found: CannotClean
        fails "cleans" with "`clean` failed: no rollback";
    a_clean_that_breaks_its_resource_is_found: CondemnsCleaned
        fails "cleans" with "`is_broken` condemns a cleaned resource";
    a_new_resource_that_is_dirty_is_found: BornDirty
        fails "cleans" with "a new resource is dirty";
    closures_that_disagree_are_found: DirtHasNoEffect
        fails "cleans" with "the closures of the suite disagree";
    an_open_that_must_not_be_dropped_is_found: JamsOpen
        fails "survives cancellation"
        with "`open` has not ended within 200ms, after `open` was dropped at poll 1";
    a_check_that_must_not_be_dropped_is_found: JamsCheck
        fails "survives cancellation"
        with "`open` has not ended within 200ms, after `check` was dropped at poll 1";
    a_clean_that_must_not_be_dropped_is_found: JamsClean
        fails "survives cancellation"
        with "`open` has not ended within 200ms, after `clean` was dropped at poll 1";
    a_close_that_must_not_be_dropped_is_found: JamsClose
        fails "survives cancellation"
        with "`open` has not ended within 200ms, after `close` was dropped at poll 1";
    an_open_that_leaves_something_behind_when_dropped_is_found: KeepsDropped
        fails "survives cancellation" with "the backend has 2 more than before the suite";
    a_close_that_fails_is_found: CannotClose
        fails "closes" with "`close` of a good resource failed: no goodbye";
    a_close_that_hangs_is_found: ClosesForever
        fails "opens" with "`close` of a new resource has not ended within 200ms";
    a_close_that_hangs_on_a_dead_resource_is_found: HangsOnDeadClose
        fails "detects death" with "`close` of a killed resource has not ended within 200ms";
    a_close_that_closes_nothing_is_found: KeepsClosed
        fails "closes" with "the backend has";
}
