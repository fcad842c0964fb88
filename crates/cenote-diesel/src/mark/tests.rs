//! What texts are taken for.

use diesel::query_dsl::methods::FilterDsl;
use diesel::{ExpressionMethods, debug_query};

use super::Mark;

diesel::table! {
    weather (id) {
        id -> Integer,
        temp -> Integer,
    }
}

#[test]
fn statements_that_only_read_and_write_rows_are_harmless() {
    for sql in [
        "",
        " ; ",
        "SELECT 1",
        "(select 1) union (select 2);",
        "insert into temp values (1)",
        "update t set a = 1",
        "with a as (select 1) delete from t",
        "select \"weather\".\"temp\" from \"weather\"",
        "create table t (a int); create index i on t (a)",
        "select pg_advisory_xact_lock(1)",
    ] {
        assert_eq!(Mark::of_text(sql), Mark::Harmless, "{sql}");
    }
}

#[test]
fn words_of_transactions_are_told_from_changes_of_the_session() {
    for sql in [
        "BEGIN",
        "  start transaction",
        "begin; insert into t values (1); commit",
        "select 1; SAVEPOINT a",
    ] {
        assert_eq!(Mark::of_text(sql), Mark::Transaction, "{sql}");
    }
}

#[test]
fn a_text_that_is_not_known_to_be_harmless_may_change_the_session() {
    for sql in [
        "set lock_timeout = '7s'",
        "SET autocommit = 0",
        "select 1; set a = 1",
        "/* select */ begin",
        "-- select\nbegin",
        "listen a",
        "do $$ begin end $$",
        "call f()",
        "select set_config('a', $1, false)",
        "select GET_LOCK('a', 1)",
        "select 1 into temp t",
        "select 1 INTO @a",
        "select @a := 1",
        "create temporary table t (a int)",
        "create or replace temp view v as select 1",
        "create function pg_temp.f() returns int as 'select 1' language sql",
        "pragma foreign_keys = off",
        "discard all",
        "insert into t values ('a; b')", // looks worse than it is
    ] {
        assert_eq!(Mark::of_text(sql), Mark::Session, "{sql}");
    }
}

/// This fails if diesel writes a query in other pieces.
#[test]
fn the_values_of_a_query_are_not_read() {
    let query = weather::table.filter(weather::temp.eq(7));
    let query = debug_query::<diesel::sqlite::Sqlite, _>(&query);
    assert!(query.to_string().ends_with(" -- binds: [7]"));

    assert_eq!(Mark::of_query(&query), Mark::Harmless);

    let values = diesel::sql_query("select ?").bind::<diesel::sql_types::Text, _>("; begin");
    let values = debug_query::<diesel::sqlite::Sqlite, _>(&values);
    assert_eq!(Mark::of_query(&values), Mark::Harmless);
    let begin = diesel::sql_query("begin");
    let begin = debug_query::<diesel::sqlite::Sqlite, _>(&begin);
    assert_eq!(Mark::of_query(&begin), Mark::Transaction);
}
