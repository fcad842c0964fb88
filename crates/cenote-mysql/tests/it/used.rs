//! Everyday use.

use cenote_mysql::mysql_async::prelude::{BatchQuery, Query, Queryable, WithParams};
use cenote_mysql::mysql_async::{Row, params};
use cenote_mysql::{Config, Pool};

use crate::rig::Rig;

#[tokio::test]
async fn a_lease_runs_the_statements_of_the_driver() {
    let rig = Rig::new("use").await;
    let mut lease = rig.acquire().await;

    let rows = [(1, 10), (2, 20), (3, 30)];
    lease
        .exec_batch("INSERT INTO t VALUES (?, ?)", rows)
        .await
        .unwrap();
    let all: Vec<(i32, i32)> = lease.query("SELECT a, b FROM t ORDER BY a").await.unwrap();
    let statement = lease.prep("SELECT b FROM t WHERE a = :a").await.unwrap();
    let by_name: Option<i32> = lease
        .exec_first(&statement, params! { "a" => 2 })
        .await
        .unwrap();
    lease.close(statement).await.unwrap();
    lease
        .exec_drop("DELETE FROM t WHERE a > ?", (1,))
        .await
        .unwrap();

    assert_eq!(
        lease.affected_rows(),
        2,
        "a function of the driver's connection"
    );
    assert_eq!((all, by_name), (rows.to_vec(), Some(20)));
    lease.ping().await.unwrap();
}

#[tokio::test]
async fn functions_that_take_a_connection_of_the_driver_take_a_lease() {
    let rig = Rig::new("take").await;
    let mut lease = rig.acquire().await;

    "INSERT INTO t VALUES (?, ?)"
        .with([(1, 1), (2, 2)])
        .batch(&mut **lease)
        .await
        .unwrap();
    let sum: Option<i32> = "SELECT SUM(a) FROM t".first(&mut **lease).await.unwrap();

    assert_eq!(sum, Some(3));
}

#[tokio::test]
async fn a_pool_runs_statements_and_holds_nothing_afterwards() {
    let rig = Rig::new("alone").await;
    let pool = &rig.pool;

    assert_eq!(
        pool.exec_drop("INSERT INTO t VALUES (?, ?)", (1, 2))
            .await
            .unwrap(),
        1
    );
    pool.query_drop("INSERT INTO t VALUES (3, 4)")
        .await
        .unwrap();
    let pairs: Vec<(i32, i32)> = pool.query("SELECT a, b FROM t ORDER BY a").await.unwrap();
    let first: Option<Row> = pool
        .query_first("SELECT a FROM t ORDER BY a")
        .await
        .unwrap();
    let none: Option<i32> = pool
        .exec_first("SELECT a FROM t WHERE a = ?", (9,))
        .await
        .unwrap();
    let one: Vec<i32> = pool
        .exec("SELECT a FROM t WHERE b = ?", (4,))
        .await
        .unwrap();

    assert_eq!((pairs, none, one), (vec![(1, 2), (3, 4)], None, vec![3]));
    assert_eq!(first.unwrap().get::<i32, _>(0), Some(1));
    assert_eq!(pool.status().in_use, 0);
}

#[tokio::test]
async fn statements_of_spawned_tasks_share_the_pool() {
    let rig = Rig::with("tasks", |builder| builder.max_size(3)).await;

    let tasks: Vec<_> = (0..30)
        .map(|a| {
            let pool = rig.pool.clone();
            tokio::spawn(async move {
                let insert = "INSERT INTO t VALUES (?, ?)";
                pool.exec_drop(insert, (a, a)).await.unwrap();
                let mut lease = pool.acquire().await.unwrap();
                let read = "SELECT b FROM t WHERE a = ?";
                lease.exec_first::<i32, _, _>(read, (a,)).await.unwrap()
            })
        })
        .collect();

    for (a, task) in (0..).zip(tasks) {
        assert_eq!(task.await.unwrap(), Some(a));
    }
    assert!(rig.pool.status().opened <= 3);
    assert_eq!(rig.rows().await.len(), 30);
}

#[tokio::test]
async fn the_call_site_of_a_statement_is_known() {
    let rig = Rig::with("site", |builder| builder.max_size(1)).await;
    let held = rig.pool.acquire().await.unwrap();
    let line = line!() - 1;

    assert_eq!(rig.pool.leases()[0].site.file(), file!());
    assert_eq!(rig.pool.leases()[0].site.line(), line);
    drop(held);
}

#[tokio::test]
async fn a_pool_is_built_from_a_file() {
    let server = cenote_servers::mariadb::find().unwrap();
    let file = format!(
        "url = \"{}\"\nsettings = [\"SET @x = 7\"]\n[pool]\nmax_size = 2\nname = \"filed\"",
        server.url()
    );
    let config: Config = toml::from_str(&file).unwrap();
    let pool = Pool::from_config(config).build().unwrap();

    let x: Option<i32> = pool.query_first("SELECT @x").await.unwrap();

    assert_eq!(
        (x, pool.name(), pool.status().max_size),
        (Some(7), "filed", 2)
    );
}
