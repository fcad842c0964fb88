//! Futures that are dropped at every await, and statements that the server still works on.

use std::time::Duration;

use cenote::{Lease, Pool};
use cenote_diesel::diesel::result::Error;
use cenote_diesel::diesel_async::{AsyncConnection, SimpleAsyncConnection};
use cenote_testkit::conformance::cut;
use tokio::time::timeout;

use crate::world::{My, Pg, World, on_each_backend};
use crate::{LIMIT, eventually, next};

/// A call on a real server is polled a few times.
const MOST_POLLS: usize = 200;

on_each_backend!(
    a_transaction_may_be_dropped_at_every_await,
    a_statement_may_be_dropped_at_every_await,
    a_dropped_statement_gives_its_answer_to_no_other_user,
);

async fn a_transaction_may_be_dropped_at_every_await<W: World>(name: &str) {
    let world = W::new(name).await;
    let pool = world.pool(1);
    for polls in 0..MOST_POLLS {
        let mut lease = pool.acquire().await.unwrap();
        let work = lease.transaction::<_, Error, _>(async |lease| {
            lease.batch_execute("insert into t values (1)").await?;
            let inner = lease.transaction::<_, Error, _>(async |lease| {
                lease.batch_execute("insert into t values (2)").await
            });
            inner.await
        });
        let ended = cut(polls, work).await;

        let (mut lease, _) = next(&pool, lease).await;

        assert!(!W::is_open(&mut lease).await, "dropped at poll {polls}");
        Lease::discard(lease);
        let rows = world.rows().await;
        // A commit that was sent may be made, whether its future is dropped or not.
        assert!([vec![], vec![1, 2]].contains(&rows), "{rows:?}");
        if let Some(ended) = ended {
            ended.unwrap();
            assert_eq!(rows, [1, 2]);
            return;
        }
        let mut lease = pool.acquire().await.unwrap();
        lease.batch_execute("delete from t").await.unwrap();
    }
    panic!("it never ends");
}

async fn a_statement_may_be_dropped_at_every_await<W: World>(name: &str) {
    let world = W::new(name).await;
    let pool = world.pool(1);
    for polls in 0..MOST_POLLS {
        let mut lease = pool.acquire().await.unwrap();
        let insert = lease.batch_execute("begin; insert into t values (1)");
        let ended = cut(polls, insert).await;

        let (mut lease, _) = next(&pool, lease).await;

        assert!(!W::is_open(&mut lease).await, "dropped at poll {polls}");
        Lease::discard(lease);
        assert!(world.rows().await.is_empty());
        if ended.is_some() {
            return;
        }
    }
    panic!("it never ends");
}

async fn a_dropped_statement_gives_its_answer_to_no_other_user<W: World>(name: &str) {
    let world = W::new(name).await;
    let pool = world.pool(1);
    let mut ended = 0;
    for round in 0..40 {
        let mut lease = pool.acquire().await.unwrap();
        let polls = usize::try_from(round % 10).unwrap();
        let echo = cut(polls, W::echo(&mut lease, round)).await;
        ended += usize::from(echo.is_some());

        let (mut lease, _) = next(&pool, lease).await;

        assert_eq!(W::echo(&mut lease, 1000 + round).await, 1000 + round);
    }
    assert!(ended < 40, "some were dropped");
}

async fn dropped<W: World>(
    pool: &Pool<cenote_diesel::Diesel<W::C>>,
    sql: &str,
) -> Lease<cenote_diesel::Diesel<W::C>> {
    let mut lease = pool.acquire().await.unwrap();
    let slow = lease.batch_execute(sql);
    let slow = timeout(Duration::from_millis(100), slow).await;
    assert!(slow.is_err(), "it is dropped");
    lease
}

#[tokio::test]
async fn postgres_is_awaited_and_keeps_the_connection() {
    let world = Pg::new("pg_awaited").await;
    let pool = world.pool(1);
    let lease = dropped::<Pg>(&pool, "select pg_sleep(1)").await;

    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(is_same);
    assert_eq!(Pg::echo(&mut lease, 7).await, 7);
}

#[tokio::test]
async fn a_statement_of_postgres_that_takes_too_long_is_ended_on_the_server() {
    let world = Pg::new("pg_too_long").await;
    let pool = Pool::builder(world.manager()).max_size(1);
    let pool = pool.clean_timeout(Duration::from_millis(200));
    let pool = pool.acquire_timeout(LIMIT).build().unwrap();
    let lease = dropped::<Pg>(&pool, "select pg_sleep(60)").await;

    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(!is_same);
    assert_eq!(Pg::echo(&mut lease, 7).await, 7);
    eventually("it is ended", async || world.sessions().await == (1, 0)).await;
}

#[tokio::test]
async fn a_statement_of_mysql_is_ended_on_the_server() {
    let world = My::new("my_ended").await;
    let pool = world.pool(1);
    let lease = dropped::<My>(&pool, "select sleep(60)").await;

    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(!is_same);
    assert_eq!(My::echo(&mut lease, 7).await, 7);
    eventually("it is ended", async || world.sessions().await == (1, 0)).await;
}

/// The driver skips the rows when the connection is used next.
#[tokio::test]
async fn rows_that_are_not_read_disturb_no_other_user() {
    use cenote_diesel::diesel::{self, dsl::sql, sql_types::Integer};
    use cenote_diesel::diesel_async::RunQueryDsl;
    use futures_util::StreamExt;

    let world = My::new("my_rows").await;
    let pool = world.pool(1);
    let mut lease = pool.acquire().await.unwrap();
    let many = diesel::select(sql::<Integer>("seq from seq_1_to_100000"));
    let mut rows = many.load_stream::<i32>(&mut lease).await.unwrap();
    assert_eq!(rows.next().await.unwrap().unwrap(), 1);
    drop(rows);

    let (mut lease, is_same) = next(&pool, lease).await;

    assert!(is_same);
    assert_eq!(My::echo(&mut lease, 7).await, 7);
}
