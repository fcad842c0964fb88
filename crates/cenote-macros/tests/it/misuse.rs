//! What does not compile, and what the compiler says then.

#[test]
fn misuse_is_refused_with_the_fix() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
