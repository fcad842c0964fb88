//! Whether a transaction is open after a statement.

use super::open_after;

#[track_caller]
fn leaves(open: bool, texts: &[&str]) {
    for text in texts {
        assert_eq!(open_after(text, false), open, "after none: {text:?}");
    }
}

#[track_caller]
fn keeps(texts: &[&str]) {
    for text in texts {
        for open in [false, true] {
            assert_eq!(open_after(text, open), open, "{text:?}");
        }
    }
}

#[test]
fn a_text_that_begins_a_transaction_leaves_it_open() {
    leaves(
        true,
        &[
            "BEGIN",
            "begin immediate",
            "START TRANSACTION READ ONLY",
            "BEGIN; INSERT INTO t VALUES (1)",
            "/* by hand */ BEGIN; -- again\nSELECT 1",
            "BEGIN; SAVEPOINT a; ROLLBACK TO a",
            "BEGIN; COMMIT AND CHAIN",
            "BEGIN; COMMIT; BEGIN",
        ],
    );
}

#[test]
fn a_text_that_ends_a_transaction_leaves_none_open() {
    let ends = [
        "COMMIT",
        "ROLLBACK",
        "END",
        "abort work",
        "BEGIN; SELECT 1; COMMIT",
        "BEGIN; COMMIT AND NO CHAIN",
    ];
    leaves(false, &ends);
    for end in ends {
        assert!(!open_after(end, true), "{end:?}");
    }
}

#[test]
fn other_texts_change_nothing() {
    keeps(&[
        "",
        "SELECT 1",
        "START REPLICA",
        "ROLLBACK TO SAVEPOINT a",
        "ROLLBACK PREPARED 'a'",
        "COMMIT AND CHAIN",
        "DO $$ BEGIN PERFORM 1; END $$",
        "CREATE FUNCTION f() RETURNS int AS $$ BEGIN PERFORM 1; END $$ LANGUAGE plpgsql",
        "CREATE TRIGGER a AFTER INSERT ON t BEGIN DELETE FROM u; END",
        "INSERT INTO t VALUES ('now; begin', 'then; commit', 'it''s; end')",
        "BEGIN NOT ATOMIC SET @a = 1; SELECT 1",
    ]);
}
