//! Code that must not compile, and the errors of the compiler.

#[test]
fn the_error_of_a_misuse_tells_the_fix() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
