//! Tests with a database in several processes: the budget, and what a killed process leaves.
//!
//! A child process is this program with one of the functions named `child_..`. Without a parent
//! such a function has nothing to do.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;

use cenote_sqlx::__test::{Plan, run};
use cenote_sqlx::Db;
use sqlx::{Connection, PgConnection, Postgres};

use crate::world;

const BUDGET: i64 = 8;
const KILLED: &str = "cenote_killed";
const THREADS: usize = 6;
const TESTS: usize = 15;

/// The URL by another name of the server, whose budget no other test shares.
fn url(mark: &str) -> String {
    let name = if mark == KILLED {
        "LOCALHOST"
    } else {
        "localhost"
    };
    let url = world::postgres::url().replace("127.0.0.1", name);
    world::with_parameter(&url, &format!("application_name={mark}"))
}

fn plan(mark: &str, isolated: bool) -> Plan {
    Plan {
        url: Some(url(mark)),
        migrator: None,
        fixtures: &[],
        isolated,
    }
}

fn is_child() -> bool {
    env::var_os("CENOTE_CHILD").is_some()
}

fn start(name: &str) -> Child {
    let mut child = Command::new(env::current_exe().unwrap());
    let name = format!("attribute_processes::{name}");
    child.args(["--exact", &name, "--nocapture"]);
    child.env("CENOTE_CHILD", "yes").stdout(Stdio::piped());
    child.spawn().unwrap()
}

/// Returns the first line that the child prints after `word`.
fn said(child: &mut Child, word: &str) -> String {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut found = lines.filter_map(|line| Some(line.ok()?.split_once(word)?.1.to_owned()));
    found.next().expect("the child says it")
}

async fn number(sql: &'static str, parameter: &str) -> i64 {
    let mut connection = PgConnection::connect(world::postgres::server())
        .await
        .unwrap();
    let number = sqlx::query_scalar(sql).bind(parameter);
    number.fetch_one(&mut connection).await.unwrap()
}

#[test]
fn child_runs_many_tests() {
    if !is_child() {
        return;
    }
    let threads = (0..THREADS).map(|_| {
        thread::spawn(|| {
            for _ in 0..TESTS {
                run(plan("cenote_budget", false), async |db: Db<Postgres>| {
                    for _ in 0..3 {
                        sqlx::query("SELECT 1").execute(&db).await.unwrap();
                    }
                });
            }
        })
    });
    for thread in threads.collect::<Vec<_>>() {
        thread.join().unwrap();
    }
}

#[tokio::test]
async fn the_tests_of_all_processes_share_one_budget_of_connections() {
    let mut children = [(); 3].map(|()| start("child_runs_many_tests"));
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1";

    let mut most = 0;
    while children
        .iter_mut()
        .any(|child| child.try_wait().unwrap().is_none())
    {
        most = most.max(number(sessions, "cenote_budget").await);
    }

    assert!(
        children
            .iter_mut()
            .all(|child| child.wait().unwrap().success())
    );
    assert!((2..=BUDGET).contains(&most), "{most} sessions at a time");
}

#[test]
fn child_waits_to_be_killed() {
    if !is_child() {
        return;
    }
    run(plan(KILLED, true), async |db: Db<Postgres>| {
        let name = sqlx::query_scalar("SELECT current_database()::text");
        let name: String = name.fetch_one(&db).await.unwrap();
        sqlx::query("CREATE TABLE left_over (a INT)")
            .execute(&db)
            .await
            .unwrap();
        println!("\ndatabase={name}");
        std::future::pending::<()>().await;
    });
}

#[test]
fn the_database_of_a_killed_test_is_dropped_by_the_next_one() {
    let mut child = start("child_waits_to_be_killed");
    let name = said(&mut child, "database=");
    child.kill().unwrap();
    child.wait().unwrap();

    let next = run(plan(KILLED, true), async |db: Db<Postgres>| {
        let sql = "SELECT to_regclass('left_over') IS NULL";
        sqlx::query_scalar::<_, bool>(sql)
            .fetch_one(&db)
            .await
            .unwrap()
    });

    assert!(next, "it has a new database");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let databases = "SELECT count(*) FROM pg_database WHERE datname = $1";
    assert_eq!(runtime.unwrap().block_on(number(databases, &name)), 0);
}
