//! Texts, and what they may leave in a session.

use super::{Dirt, Effect, Meaning};

fn dirt(sql: &str) -> Dirt {
    Meaning::of_one(sql).dirt
}

#[test]
fn statements_that_use_data_leave_nothing() {
    for sql in [
        "SELECT 1",
        " \n-- note\n/* a /* nested */ note */ select attempts, temperature from t",
        "(select 1)",
        "with a as (select 1) select * from a",
        "insert into t values ($1)",
        "insert into t select temp from u",
        "select temp from readings",
        "UPDATE t SET a = 1",
        "delete from t",
        "create table t (a int)",
        "select pg_advisory_xact_lock(1)",
        "select 'a;b'",
        "",
        "-- nothing",
        "/* open",
    ] {
        assert_eq!(Meaning::of_one(sql), Meaning::HARMLESS, "{sql}");
    }
}

#[test]
fn statements_that_change_the_session_are_noticed() {
    for sql in [
        "SET work_mem = '1MB'",
        "/* c */ Set x = 1",
        "listen a",
        "create temp table t (a int)",
        "CREATE TEMPORARY VIEW v AS SELECT 1",
        "select * into temp t from u",
        "select 1 into pg_temp.t",
        "select pg_catalog.set_config('a.b', 'c', false)",
        "select \"set_config\"('a.b', 'c', false)",
        "select '--', set_config('a.b', 'c', false)",
        "with a as (select PG_ADVISORY_LOCK(1)) select * from a",
        "select pg_try_advisory_lock_shared(1)",
        "update pg_settings set setting = '1' where name = 'a'",
        "do $$ begin perform 1; end $$",
        "call p()",
        "declare c cursor with hold for select 1",
        "load 'x'",
        "\u{e4}select 1",
        "$1",
    ] {
        assert_eq!(dirt(sql), Dirt::STATE, "{sql}");
    }
    for sql in [
        "prepare a as select 1",
        "execute a",
        "DISCARD ALL",
        "deallocate a",
    ] {
        assert_eq!(dirt(sql), Dirt::STATE | Dirt::PREPARED, "{sql}");
    }
}

#[test]
fn transactions_are_followed() {
    let keeps = Meaning::IN_TRANSACTION;
    for (sql, meaning) in [
        ("BEGIN", Meaning::OPENS),
        ("start transaction read only", Meaning::OPENS),
        ("/**/begin", Meaning::OPENS),
        ("COMMIT", Meaning::ENDS),
        ("end;", Meaning::ENDS),
        ("rollback work", Meaning::ENDS),
        ("abort", Meaning::ENDS),
        ("commit and chain", keeps),
        ("rollback to a", keeps),
        ("rollback prepared 'a'", keeps),
        ("savepoint a", keeps),
        ("release a", keeps),
    ] {
        assert_eq!(Meaning::of_batch(sql), meaning, "{sql}");
    }
}

#[test]
fn a_batch_of_statements_is_not_trusted() {
    assert_eq!(Meaning::of_batch("select 1"), Meaning::HARMLESS);
    assert_eq!(Meaning::of_batch("select 1; \n"), Meaning::HARMLESS);
    for (sql, dirt) in [
        ("select 1; select 2", Dirt::STATE),
        ("select 1; begin", Dirt::STATE | Dirt::TRANSACTION),
        ("begin; commit", Dirt::STATE | Dirt::TRANSACTION),
        ("select 1; discard temp", Dirt::STATE | Dirt::PREPARED),
        (";begin;prepare a as select 1", Dirt::ANY),
    ] {
        assert_eq!(
            Meaning::of_batch(sql),
            Meaning::of(dirt, Effect::Keeps),
            "{sql}"
        );
    }
}
