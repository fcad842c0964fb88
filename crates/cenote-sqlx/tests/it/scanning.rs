//! What the text of a statement says about the state that it leaves in its session.

use cenote_sqlx::{Dialect, Dirt};
use sqlx::{MySql, Postgres, Sqlite};

#[track_caller]
fn says<DB: Dialect>(dirt: Dirt, statements: &[&str]) {
    for sql in statements {
        assert!(DB::scan(sql).has(dirt), "{} overlooks {sql:?}", DB::NAME);
    }
}

#[track_caller]
fn clean<DB: Dialect>(statements: &[&str]) {
    for sql in statements {
        assert_eq!(DB::scan(sql), Dirt::NONE, "{} about {sql:?}", DB::NAME);
    }
}

const USUAL: &[&str] = &[
    "SELECT 1",
    "SELECT * FROM settings WHERE begin_at > $1 AND end_at < $2",
    "INSERT INTO t (a, b) VALUES (1, 'x')",
    "UPDATE t\n   SET a = 1\n WHERE b = 2",
    "DELETE FROM t WHERE id = 1",
    "WITH x AS (SELECT 1) SELECT CASE WHEN a THEN 1 ELSE 2 END FROM x",
    "CREATE TABLE t (a INTEGER)",
    "",
];

#[test]
fn usual_statements_leave_no_state() {
    clean::<Postgres>(USUAL);
    clean::<MySql>(USUAL);
    clean::<Sqlite>(USUAL);
    clean::<Postgres>(&["SELECT pg_advisory_xact_lock(1)", "SELECT nextval('s')"]);
    clean::<MySql>(&[
        "INSERT INTO t VALUES ('someone at example')",
        "SELECT @@version",
        "UPDATE t /* c */ SET a = 1",
        "UPDATE t -- c\nSET a = 1",
        "SELECT -- c\nCASE WHEN 1 THEN 2 END",
        "SELECT /* c */ IF(1, 2, 3)",
        "SELECT a FROM t -- c\nFOR UPDATE",
        "SELECT 'x; set y'",
        "SELECT 'temporary'",
        "INSERT INTO t VALUES ('me@x.org')",
        "SELECT /*!40001 SQL_NO_CACHE */ 1",
        "SET GLOBAL max_connections = 100",
    ]);
    clean::<Sqlite>(&[
        "PRAGMA table_info(t)",
        "PRAGMA foreign_keys",
        "PRAGMA user_version = 3",
        "SELECT temp FROM weather",
        "INSERT INTO t SELECT temp.a FROM u AS temp",
    ]);
}

#[test]
fn a_transaction_is_noticed_wherever_a_statement_can_begin() {
    let begins = [
        "BEGIN",
        "  begin transaction",
        "-- a comment\nBEGIN",
        "/* a comment */BEGIN",
        "SELECT 1; BEGIN",
        "SELECT '/*'; BEGIN; SELECT '*/'",
        "SELECT 1;\n\nBegin",
        "COMMIT",
        "SAVEPOINT a",
    ];
    says::<Postgres>(Dirt::TRANSACTION, &begins);
    says::<MySql>(Dirt::TRANSACTION, &begins);
    says::<Sqlite>(Dirt::TRANSACTION, &begins);
    says::<Postgres>(
        Dirt::TRANSACTION,
        &["START TRANSACTION", "COMMIT AND CHAIN"],
    );
    says::<MySql>(
        Dirt::TRANSACTION,
        &[
            "START TRANSACTION",
            "SET autocommit = 0",
            "XA START 'a'",
            "# x\nBEGIN",
        ],
    );
}

#[test]
fn changes_of_the_session_are_noticed() {
    let postgres = [
        "SET search_path TO a",
        "set local x = 1",
        "RESET ALL",
        "LISTEN news",
        "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
        "CREATE TEMP TABLE t (a int)",
        "create temporary view v as select 1",
        "SELECT 1 INTO TEMP t",
        "CREATE TABLE pg_temp.t (a int)",
        "SELECT set_config('a', 'b', false)",
        "DO $$ BEGIN PERFORM 1; END $$",
        "CALL anything()",
        "LOAD 'auto_explain'",
        "UPDATE pg_settings SET setting = '7MB' WHERE name = 'work_mem'",
        r#"SELECT U&"set\005fconfig"('a', 'b', false)"#,
        "SELECT query_to_xml('SELECT 1', true, true, '')",
        "SELECT pg_replication_origin_session_setup('a')",
    ];
    says::<Postgres>(Dirt::STATE, &postgres);
    let mysql = [
        "SET @a = 1",
        "SELECT @a := 1",
        "SELECT 1 INTO @a",
        "USE mysql",
        "CREATE TEMPORARY TABLE t (a int)",
        "/*!40101 SET NAMES utf8 */",
        "HANDLER t OPEN",
        "BACKUP LOCK t",
        "GET DIAGNOSTICS @v = NUMBER",
        "SET GLOBAL sort_buffer_size = 65536, sort_buffer_size = 65536",
        "CALL anything()",
    ];
    says::<MySql>(Dirt::STATE, &mysql);
    says::<Sqlite>(
        Dirt::STATE,
        &[
            "PRAGMA foreign_keys = 0",
            "ATTACH 'a' AS b",
            "CREATE TEMP TABLE t (a)",
            "INSERT INTO temp.t VALUES (1)",
        ],
    );
}

#[test]
fn locks_and_prepared_statements_are_noticed() {
    says::<Postgres>(
        Dirt::LOCKS,
        &[
            "SELECT pg_advisory_lock(1)",
            "SELECT pg_try_advisory_lock_shared(1)",
        ],
    );
    says::<MySql>(
        Dirt::LOCKS,
        &[
            "SELECT GET_LOCK('a', 1)",
            "LOCK TABLES t WRITE",
            "FLUSH TABLES WITH READ LOCK",
        ],
    );
    says::<Postgres>(Dirt::PREPARED, &["PREPARE a AS SELECT 1", "DEALLOCATE ALL"]);
    says::<MySql>(Dirt::PREPARED, &["PREPARE a FROM 'SELECT 1'"]);
}
