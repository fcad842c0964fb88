//! Statements: prepared, cached, streamed, copied and sent ahead.

use bytes::Bytes;
use cenote_postgres::tokio_postgres::types::Type;
use futures_util::{SinkExt, TryStreamExt};

use crate::{Admin, backend, builder, number, pool, url};

const PREPARED: &str = "select count(*) from pg_prepared_statements";

#[tokio::test]
async fn every_kind_of_statement_returns_its_rows() {
    let pool = pool(1);
    let lease = pool.acquire().await.unwrap();

    let rows = lease.query("select generate_series(1, $1::int)", &[&3]);
    assert_eq!(rows.await.unwrap().len(), 3);
    let one: i32 = lease.query_one("select 7", &[]).await.unwrap().get(0);
    let none = lease.query_opt("select 7 where false", &[]).await.unwrap();
    let changed = lease.execute("select generate_series(1, 4)", &[]).await;
    let typed = lease.query_typed("select $1::text", &[(&"a", Type::TEXT)]);
    assert_eq!(typed.await.unwrap()[0].get::<_, &str>(0), "a");
    assert_eq!((one, none.is_none(), changed.unwrap()), (7, true, 4));
    assert_eq!(
        lease
            .simple_query("select 1; select 2")
            .await
            .unwrap()
            .len(),
        6
    );

    drop(lease);
    assert_eq!(number(&pool, "select 5::bigint").await, 5);
    assert!(
        pool.query_opt("select 1 where false", &[])
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn a_cached_statement_is_prepared_once_per_connection() {
    let pool = pool(1);
    for n in 0..3 {
        let lease = pool.acquire().await.unwrap();
        let add = lease.prepare_cached("select 2 + $1").await.unwrap();
        let sum: i32 = lease.query_one(&add, &[&n]).await.unwrap().get(0);
        assert_eq!(sum, 2 + n);
        let typed = lease
            .prepare_typed_cached("select 2 + $1", &[Type::INT8])
            .await
            .unwrap();
        assert_eq!(typed.params(), [Type::INT8]);
        assert_eq!(lease.cached_statements(), 2);
    }

    let lease = pool.acquire().await.unwrap();
    let count: i64 = lease.query_one(PREPARED, &[]).await.unwrap().get(0);
    assert_eq!(count, 3, "two that are cached, and this one");
}

#[tokio::test]
async fn the_cache_forgets_the_statement_that_was_used_least_recently() {
    let pool = builder(1).statement_cache_capacity(2).build().unwrap();
    let lease = pool.acquire().await.unwrap();
    for sql in ["select 1", "select 2", "select 1", "select 3"] {
        lease.prepare_cached(sql).await.unwrap();
    }

    let left = "select string_agg(statement, ',' order by statement) from pg_prepared_statements \
                where statement not like '%string_agg%'";
    let left: String = lease.query_one(left, &[]).await.unwrap().get(0);

    assert_eq!(left, "select 1,select 3");
    let none = builder(1).statement_cache_capacity(0).build().unwrap();
    let lease = none.acquire().await.unwrap();
    lease.prepare_cached("select 1").await.unwrap();
    assert_eq!(lease.cached_statements(), 0);
}

#[tokio::test]
async fn a_stale_plan_is_prepared_again_and_tried_once() {
    let pool = pool(1);
    let other = Admin::at(url()).await;
    let table = format!("cenote_pg_stale_{}", std::process::id());
    let change = async |sql: &str| {
        let sql = sql.replace("{}", &table);
        other.0.batch_execute(&sql).await.unwrap();
    };
    change("drop table if exists {}; create table {} (a int); insert into {} values (1)").await;
    let select = format!("select * from {table} where a = $1");
    pool.query(&select, &[&1]).await.unwrap();

    change("alter table {} add column b text").await;
    let rows = pool.query(&select, &[&1]).await.unwrap();

    assert_eq!(rows[0].len(), 2);
    change("alter table {} add column c text").await;
    let inside = pool.transaction(async || pool.query(&select, &[&1]).await);
    let error = inside.await.unwrap_err();
    assert_eq!(error.as_postgres().unwrap().code().unwrap().code(), "0A000");
    let again = pool.transaction(async || pool.query(&select, &[&1]).await);
    assert_eq!(again.await.unwrap()[0].len(), 3);
    assert_eq!(pool.status().opened, 1, "the connection is kept");
    change("drop table {}").await;
}

#[tokio::test]
async fn statements_that_the_server_has_forgotten_are_prepared_again() {
    let pool = pool(1);
    for forget in ["deallocate all", "discard all", "select 1; deallocate all"] {
        pool.query("select 1", &[]).await.unwrap();
        let lease = pool.acquire().await.unwrap();
        let kept = lease.prepare_cached("select 1").await.unwrap();

        lease.batch_execute(forget).await.unwrap();

        assert_eq!(lease.query(&kept, &[]).await.unwrap().len(), 1, "{forget}");
        drop(lease);
        pool.query("select 1", &[]).await.unwrap();
    }
    let lease = pool.acquire().await.unwrap();
    lease.prepare_cached("select 2").await.unwrap();
    lease.client().batch_execute("discard all").await.unwrap();
    drop(lease);
    pool.query("select 2", &[]).await.unwrap();
    assert_eq!(pool.status().opened, 1);
}

#[tokio::test]
async fn several_statements_run_on_one_lease_at_the_same_time() {
    let pool = pool(1);
    let lease = pool.acquire().await.unwrap();
    let text = "select $1::int";
    let statement = lease.prepare_cached(text).await.unwrap();

    let (a, b, c) = tokio::join!(
        lease.query_one(&statement, &[&1]),
        lease.query_one(text, &[&2]),
        lease.query_one(&statement, &[&3]),
    );

    let all = [a, b, c].map(|row| row.unwrap().get::<_, i32>(0));
    assert_eq!(all, [1, 2, 3]);
}

#[tokio::test]
async fn a_stream_returns_all_rows_and_leaves_the_session_clean() {
    let pool = pool(1);
    let lease = pool.acquire().await.unwrap();
    let params: [i32; 1] = [1000];

    let rows = lease
        .query_raw("select generate_series(1, $1)", params)
        .await
        .unwrap();
    let rows: Vec<_> = rows.try_collect().await.unwrap();

    assert_eq!(rows.len(), 1000);
    drop(lease);
    assert_eq!(pool.status().idle, 1, "no cleaning was needed");
}

#[tokio::test]
async fn data_is_copied_in_and_out() {
    let pool = pool(1);
    let lease = pool.acquire().await.unwrap();
    lease
        .batch_execute("create temp table t (a int)")
        .await
        .unwrap();

    let mut sink = lease.copy_in("copy t from stdin").await.unwrap();
    sink.send(Bytes::from_static(b"1\n2\n")).await.unwrap();
    assert_eq!(sink.finish().await.unwrap(), 2);
    let lost = lease.copy_in::<Bytes>("copy t from stdin").await.unwrap();
    drop(lost);
    let out = lease.copy_out("copy t to stdout").await.unwrap();
    let out: Vec<Bytes> = out.try_collect().await.unwrap();

    assert_eq!(out.concat(), b"1\n2\n");
}

#[tokio::test]
async fn an_error_of_a_statement_keeps_its_connection() {
    let pool = pool(1);
    let before = backend(&pool.acquire().await.unwrap()).await;

    for sql in ["selekt 1", "select 1 / 0", "select * from nowhere_at_all"] {
        assert!(pool.query(sql, &[]).await.is_err());
    }
    let many = pool
        .query_one("select generate_series(1, 100000)", &[])
        .await;
    assert!(many.is_err());

    assert_eq!(backend(&pool.acquire().await.unwrap()).await, before);
}
