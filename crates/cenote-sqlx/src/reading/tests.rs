//! What the text of a query says.

use super::{Access, Effect, Reading};
use crate::lexer::Language::{self, MySql, Postgres, Sqlite};

const ALL: [Language; 3] = [Postgres, MySql, Sqlite];

#[track_caller]
fn all(languages: &[Language], texts: &[&str], holds: impl Fn(&Reading) -> bool) {
    for &language in languages {
        for text in texts {
            let reading = Reading::new(language, text);
            assert!(holds(&reading), "{language:?}: {text:?} is {reading:?}");
        }
    }
}

#[test]
fn a_text_that_begins_a_transaction_leaves_it_open() {
    let begins = [
        "BEGIN",
        "-- don't forget\nBEGIN",
        "SELECT 'it''s'; BEGIN",
        "/* by hand */ BEGIN; -- again\nSELECT 1",
        "BEGIN; INSERT INTO t VALUES (1)",
        "BEGIN; SAVEPOINT a; ROLLBACK TO a",
        "BEGIN; COMMIT; BEGIN",
    ];
    let opens = |reading: &Reading| reading.effect == Effect::Opens && !reading.doubtful;
    all(&ALL, &begins, opens);
    all(&[Postgres, MySql], &["START TRANSACTION READ ONLY"], opens);
    all(
        &[Postgres],
        &["BEGIN; COMMIT AND CHAIN", "SELECT $$it's$$; BEGIN"],
        opens,
    );
    all(
        &[MySql],
        &[r"SELECT 'it\'s'; BEGIN", "# it's\nBEGIN"],
        opens,
    );
    all(&[Sqlite], &["begin immediate", "SAVEPOINT a"], opens);
    let after_a_body = "CREATE TRIGGER a AFTER UPDATE OF begin ON t BEGIN \
                        SELECT CASE WHEN 1 THEN 2 END; DELETE FROM u; END; BEGIN";
    all(&[Sqlite], &[after_a_body], opens);
    let after_a_body = "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC \
                        SELECT CASE WHEN true THEN 2 END; END; BEGIN";
    all(&[Postgres], &[after_a_body], opens);
}

#[test]
fn a_text_that_ends_a_transaction_leaves_none_open() {
    let ends = [
        "COMMIT",
        "ROLLBACK",
        "commit work",
        "BEGIN; SELECT 1; COMMIT",
    ];
    let over = |reading: &Reading| reading.effect == Effect::Ends;
    all(&ALL, &ends, over);
    all(&[Postgres, Sqlite], &["END"], over);
    all(
        &[Postgres],
        &[
            "abort work",
            "PREPARE TRANSACTION 'a'",
            "COMMIT AND NO CHAIN",
        ],
        over,
    );
}

#[test]
fn other_texts_keep_the_transaction_as_it_is() {
    let others = [
        "",
        "SELECT 1",
        "SELECT -- the period\n begin, finish FROM p",
        "ROLLBACK TO SAVEPOINT a",
        "CREATE TABLE event (begin int, finish int)",
        "INSERT INTO t VALUES ('now; begin', 'then; commit', 'it''s; end')",
    ];
    let keeps = |reading: &Reading| reading.effect == Effect::Keeps;
    all(&ALL, &others, keeps);
    let code = [
        "DO $$ BEGIN PERFORM 1; END $$",
        "CREATE FUNCTION f() RETURNS int AS $$ BEGIN PERFORM 1; END $$ LANGUAGE plpgsql",
        "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END",
        "ROLLBACK PREPARED 'a'",
        "COMMIT AND CHAIN",
    ];
    all(&[Postgres], &code, keeps);
    let code = ["CREATE TRIGGER a AFTER INSERT ON t BEGIN DELETE FROM u; END"];
    all(&[Sqlite], &code, keeps);
}

#[test]
fn the_server_is_asked_where_the_text_leaves_doubt() {
    let doubtful = [
        "/*!40000 BEGIN */",
        "/*!99999 SELECT */ BEGIN",
        "CALL p()",
        "EXECUTE p",
        "SET autocommit = 0",
        "CREATE TABLE t (a INT)",
        "CREATE PROCEDURE p() BEGIN IF 1 THEN SET @a = 1; END IF; END",
        "BEGIN NOT ATOMIC SET @a = 1; SELECT 1; END",
        "XA START 'a'",
    ];
    all(&[MySql], &doubtful, |reading| reading.doubtful);
    all(&[Sqlite], &["RELEASE a"], |reading| reading.doubtful);
    let skipped = "/*!99999 SELECT */ BEGIN";
    all(&[MySql], &[skipped], |reading| {
        reading.dirt.has(crate::Dirt::TRANSACTION)
    });
}

#[test]
fn reads_are_told_from_writes() {
    let again = [
        "SELECT /* hot path */ a FROM t",
        "-- name: all\nSELECT a FROM t",
        "SELECT a -- c\nFROM t",
        "SELECT replace(updated,'a','b') FROM t",
        "SELECT a FROM t WHERE updated <> 'delete'",
        "(SELECT 1) UNION (SELECT 2)",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "VALUES (1), (2)",
        "EXPLAIN SELECT 1",
        "SELECT 1; SELECT 2;",
    ];
    all(&ALL, &again, |reading| reading.access == Access::ReadsAgain);
    let sqlite = [
        "PRAGMA table_info(t)",
        "PRAGMA journal_mode",
        "PRAGMA main.index_list('t')",
    ];
    all(&[Sqlite], &sqlite, |reading| {
        reading.access == Access::ReadsAgain
    });
    all(
        &[Sqlite],
        &["EXPLAIN INSERT INTO t VALUES (1)"],
        |reading| reading.access == Access::ReadsAgain,
    );
    let served = ["SHOW work_mem", "TABLE t"];
    all(&[Postgres, MySql], &served, |reading| {
        reading.access == Access::ReadsAgain
    });

    let writes = [
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET a = 1",
        "SELECT 1; DELETE FROM t",
        "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
        "CREATE TABLE t (a INT)",
        "BEGIN",
    ];
    all(&ALL, &writes, |reading| reading.access == Access::Writes);
    let postgres = [
        "SELECT nextval('s')",
        "SELECT pg_catalog.pg_notify('a', 'b')",
        "SELECT \"nextval\"('s')",
        "SELECT pg_advisory_xact_lock(1)",
        "SELECT * INTO u FROM t",
        "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
        "EXPLAIN ANALYZE DELETE FROM t",
        "EXPLAIN (ANALYZE) (DELETE FROM t)",
    ];
    all(&[Postgres], &postgres, |reading| {
        reading.access == Access::Writes
    });
    let mysql = [
        "SELECT GET_LOCK('a', 1)",
        "SELECT NEXT VALUE FOR s",
        "SELECT 1 INTO @a",
    ];
    all(&[MySql], &mysql, |reading| reading.access == Access::Writes);
    let sqlite = [
        "PRAGMA user_version = 3",
        "PRAGMA optimize",
        "REPLACE INTO t VALUES (1)",
    ];
    all(&[Sqlite], &sqlite, |reading| {
        reading.access == Access::Writes
    });
    let locks = [
        "SELECT a FROM t FOR UPDATE",
        "SELECT a FROM t FOR NO KEY UPDATE",
    ];
    all(&[Postgres, MySql], &locks, |reading| {
        reading.access == Access::Reads
    });
}

#[test]
fn a_text_that_only_changes_the_session_is_undone_with_it() {
    let undone = |reading: &Reading| reading.is_undone();
    all(
        &ALL,
        &[
            "BEGIN",
            "BEGIN; INSERT INTO t VALUES (1)",
            "CREATE TEMP TABLE t (a INT)",
        ],
        undone,
    );
    let postgres = [
        "SET work_mem = '2MB'",
        "LISTEN news",
        "SELECT set_config('a', 'b', false)",
        "SELECT pg_advisory_lock(1)",
        "PREPARE a AS SELECT 1",
    ];
    all(&[Postgres], &postgres, undone);
    let mysql = [
        "SET @a = 1",
        "USE test",
        "LOCK TABLES t WRITE",
        "SELECT GET_LOCK('a', 1)",
    ];
    all(&[MySql], &mysql, undone);
    all(
        &[Sqlite],
        &["PRAGMA foreign_keys = 0", "ATTACH 'a' AS b", "SAVEPOINT a"],
        undone,
    );

    let kept = |reading: &Reading| !reading.is_undone();
    let both = [
        "",
        "BEGIN; INSERT INTO t VALUES (1); COMMIT",
        "COMMIT",
        "SELECT 1",
    ];
    all(&ALL, &both, kept);
    let postgres = [
        "SET work_mem = '2MB'; SELECT 1",
        "WITH s AS (SELECT set_config('a', 'b', false)) SELECT * FROM t, s",
        "SELECT dblink_exec('dbname=x', 'DELETE FROM t')",
        "DO $$ BEGIN END $$",
        "RESET ALL",
    ];
    all(&[Postgres], &postgres, kept);
    let mysql = [
        "SET GLOBAL max_connections = 100",
        "SET PASSWORD FOR guest = PASSWORD('a')",
        "SET STATEMENT max_statement_time = 1 FOR SELECT 1",
        "FLUSH PRIVILEGES",
        "UNLOCK TABLES",
        "SELECT @a := @a + 1 FROM t",
    ];
    all(&[MySql], &mysql, kept);
    all(
        &[Sqlite],
        &["PRAGMA user_version = 3", "PRAGMA journal_mode = WAL"],
        kept,
    );
}

#[test]
fn comments_change_nothing() {
    let texts = [
        "SELECT a FROM t WHERE b = 1 FOR UPDATE",
        "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
        "BEGIN; INSERT INTO t VALUES (1); COMMIT AND CHAIN",
        "SET GLOBAL a = 1",
        "CREATE TEMP TABLE t (a INT)",
        "SELECT pg_advisory_lock (1), GET_LOCK ('a', 1)",
        "PRAGMA table_info (t)",
        "CREATE TRIGGER a AFTER INSERT ON t BEGIN DELETE FROM u; END; BEGIN",
        "START TRANSACTION; ROLLBACK TO a",
    ];
    let comments = [
        " /* it's; BEGIN */ ",
        " -- it's; \"COMMIT\"\n",
        "\t\r\n",
        " /**/ /***/ ",
    ];
    for language in ALL {
        for text in texts {
            let plain = Reading::new(language, text);
            for comment in comments {
                let text = format!("{comment}{}{comment}", text.replace(' ', comment));
                assert_eq!(
                    Reading::new(language, &text),
                    plain,
                    "{language:?}: {text:?}"
                );
            }
        }
    }
}

#[test]
fn every_text_can_be_read() {
    let letters: Vec<char> = "aBe'\"`[]$;:=@#-/*!\\(),.7 \n\0éU&M".chars().collect();
    let mut random = fastrand::Rng::with_seed(815);
    for _ in 0..10_000 {
        let text = (0..random.usize(..30)).map(|_| letters[random.usize(..letters.len())]);
        let text: String = text.collect();
        for language in ALL {
            let reading = Reading::new(language, &text);
            assert!(
                reading.statements > 0 || !reading.is_undone(),
                "{language:?}: {text:?}"
            );
        }
    }
}

#[test]
fn texts_that_end_an_open_transaction_are_known() {
    let ends = |language, sql| Reading::new(language, sql).ends_open;
    for sql in [
        "COMMIT",
        "COMMIT AND CHAIN",
        "ROLLBACK",
        "CREATE TABLE t (a INT)",
        "SELECT 1; DROP TABLE t",
        "LOCK TABLES t WRITE",
        "SET autocommit = 1",
    ] {
        assert!(ends(Language::MySql, sql), "{sql}");
    }
    for sql in [
        "ROLLBACK TO SAVEPOINT a",
        "SAVEPOINT a",
        "CREATE TEMPORARY TABLE t (a INT)",
        "DROP TEMPORARY TABLE t",
        "INSERT INTO t VALUES (1)",
    ] {
        assert!(!ends(Language::MySql, sql), "{sql}");
    }
    assert!(ends(Language::Postgres, "PREPARE TRANSACTION 'a'"));
    assert!(!ends(Language::Postgres, "CREATE TABLE t (a INT)"));
}
