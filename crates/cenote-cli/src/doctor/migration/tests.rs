//! Calls are found by line, and comments and longer names are not.

use super::*;

#[track_caller]
fn lines(from: From, file: &str, text: &str) -> Vec<usize> {
    let sites = scan(from, Path::new(file), text);
    sites.iter().map(|site| site.line).collect()
}

#[test]
fn calls_of_sqlx_are_found() {
    let code = "use sqlx::PgPool;\n\
                // let pool = PgPool::connect(url);\n\
                let pool = PgPool::connect(url).await?;\n\
                let mut tx = pool.begin().await?;\n\
                let spool = reel.size();\n";

    assert_eq!(lines(From::Sqlx, "main.rs", code), [1, 3, 4]);
}

#[test]
fn calls_of_bb8_are_found_with_what_to_write() {
    let sites = scan(
        From::Bb8,
        Path::new("a.rs"),
        "let c = self.pool.get().await?;",
    );

    assert_eq!(sites[0].instead, "`pool.acquire()`");
}

#[test]
fn dependencies_of_deadpool_are_found_in_the_manifest() {
    let manifest = "[dependencies]\ndeadpool-postgres = \"0.14\"\ndeadpool = \"0.13\"\n";

    assert_eq!(lines(From::Deadpool, "Cargo.toml", manifest), [2, 3]);
}

#[test]
fn a_longer_name_is_another_name() {
    assert!(!rules::matches("let x = MyPgPoolish;", &["PgPool"]));
    assert!(rules::matches("fn f(p: &PgPool)", &["PgPool"]));
}
