//! Hygiene: nothing that a user leaves in a session reaches the next one.

use cenote_postgres::Reset;

use crate::{backend, builder, is_open, number, pool, text};

const SET: &str = "set cenote.kept = 'yes'";
const SEEN: &str = "select coalesce(current_setting('cenote.kept', true), '')";

#[tokio::test]
async fn session_state_is_gone_before_the_next_use() {
    let pool = pool(1);
    let before = backend(&pool.acquire().await.unwrap()).await;
    let listens = "select count(*) from pg_listening_channels()";
    let locks =
        "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()";
    let settings = "select (coalesce(current_setting('cenote.kept', true), '') <> '')::int::bigint";
    let tables = "select count(*) from pg_class where relnamespace = pg_my_temp_schema()";
    let statements = "select count(*) from pg_prepared_statements where from_sql";
    let cursors = "select count(*) from pg_cursors where name = 'c'";
    for (change, seen) in [
        (SET, settings),
        ("select set_config('cenote.kept', 'yes', false)", settings),
        ("create temp table cenote_left (a int)", tables),
        ("select 1 as a into temp cenote_left", tables),
        ("select pg_advisory_lock(4711)::text", locks),
        (
            "with a as (select pg_try_advisory_lock(4711)) select * from a",
            locks,
        ),
        ("listen cenote_left", listens),
        ("prepare cenote_left as select 1", statements),
        ("declare c cursor with hold for select 1", cursors),
        (
            "do $$ begin perform set_config('cenote.kept', 'yes', false); end $$",
            settings,
        ),
    ] {
        let lease = pool.acquire().await.unwrap();
        lease.execute(change, &[]).await.unwrap();
        let left: i64 = lease.query_one(seen, &[]).await.unwrap().get(0);
        assert_eq!(left, 1, "the test is wrong: {change}");
        drop(lease);

        assert_eq!(number(&pool, seen).await, 0, "{change}");
    }
    assert_eq!(
        backend(&pool.acquire().await.unwrap()).await,
        before,
        "the connection is kept"
    );
}

#[tokio::test]
async fn an_open_transaction_is_rolled_back_before_the_next_use() {
    let pool = pool(1);
    let open = "show transaction_read_only";
    for begin in [
        "begin read only",
        "select 1; begin read only",
        "start transaction read only",
    ] {
        let lease = pool.acquire().await.unwrap();
        lease.batch_execute(begin).await.unwrap();
        assert_eq!(text(&lease, open).await, "on");
        drop(lease);

        let lease = pool.acquire().await.unwrap();
        assert_eq!(text(&lease, open).await, "off", "{begin}");
    }
    let statement = {
        let lease = pool.acquire().await.unwrap();
        lease.prepare_cached("begin read only").await.unwrap()
    };
    let lease = pool.acquire().await.unwrap();
    lease.execute(&statement, &[]).await.unwrap();
    drop(lease);
    let lease = pool.acquire().await.unwrap();
    assert_eq!(
        text(&lease, open).await,
        "off",
        "by a statement of an earlier lease"
    );
    assert_eq!(pool.status().opened, 1);
}

#[tokio::test]
async fn a_committed_transaction_needs_no_cleaning() {
    let pool = pool(1);
    let lease = pool.acquire().await.unwrap();

    lease.batch_execute("begin").await.unwrap();
    lease.execute("select 1", &[]).await.unwrap();
    lease.batch_execute("commit").await.unwrap();
    drop(lease);

    assert_eq!(pool.status().idle, 1, "it was not cleaned");
}

#[tokio::test]
async fn the_use_of_the_drivers_client_is_undone() {
    let pool = pool(1);
    let before = {
        let mut lease = pool.acquire().await.unwrap();
        let client = lease.client_mut();
        client.batch_execute(SET).await.unwrap();
        client.batch_execute("begin").await.unwrap();
        backend(&lease).await
    };

    let lease = pool.acquire().await.unwrap();

    assert_eq!(text(&lease, SEEN).await, "");
    assert_eq!(backend(&lease).await, before);
    assert!(!is_open(&lease).await);
}

#[tokio::test]
async fn the_policy_says_when_a_session_is_reset() {
    let function = "create or replace function cenote_pg_unseen() returns text language sql as \
                    $$ select set_config('cenote.kept', 'yes', false) $$";
    pool(1).batch_execute(function).await.unwrap();
    let discard = Reset::Query(String::from("discard all"));
    for (reset, seen, unseen) in [
        (Reset::Never, "yes", "yes"),
        (Reset::IfDirty, "", "yes"),
        (Reset::Always, "", ""),
        (discard, "", ""),
    ] {
        for (sql, left) in [(SET, seen), ("select cenote_pg_unseen()", unseen)] {
            let pool = builder(1).reset(reset.clone()).build().unwrap();
            let lease = pool.acquire().await.unwrap();
            lease.prepare_cached("select 1").await.unwrap();
            lease.execute(sql, &[]).await.unwrap();
            drop(lease);

            let lease = pool.acquire().await.unwrap();
            assert_eq!(text(&lease, SEEN).await, left, "{reset:?}: {sql}");
            let cached = lease.prepare_cached("select 1").await.unwrap();
            assert_eq!(lease.query(&cached, &[]).await.unwrap().len(), 1);
            assert_eq!(pool.status().opened, 1);
        }
    }
}

#[tokio::test]
async fn settings_hold_on_every_connection_and_after_every_reset() {
    let pool = builder(1)
        .setting("set work_mem = '4322kB'")
        .after_connect(|client| {
            Box::pin(async move { client.batch_execute("set cenote.kept = 'mine'").await })
        })
        .build()
        .unwrap();
    for _ in 0..2 {
        let lease = pool.acquire().await.unwrap();
        assert_eq!(text(&lease, "show work_mem").await, "4322kB");
        assert_eq!(text(&lease, SEEN).await, "mine");
        lease
            .batch_execute("set work_mem = '1MB'; set cenote.kept = 'other'")
            .await
            .unwrap();
    }

    assert_eq!(pool.status().opened, 1);
}

#[tokio::test]
async fn in_a_scope_a_changed_session_stays_until_its_end() {
    let pool = pool(2);

    cenote::scope(async {
        pool.execute(SET, &[]).await.unwrap();
        assert_eq!(pool.status().in_use, 1, "it stays");
        let row = pool.query_one(SEEN, &[]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), "yes");
    })
    .await;

    let row = pool.query_one(SEEN, &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "");
}
