//! Each peer on a real database for a moment, and what it leaves behind.

use std::time::Duration;

use sqlx::{Connection, PgConnection, SqliteConnection};
use tokio::runtime::Builder;

use super::{DEADPOOL, Database, FLOORS, Home, Load, ROWS, SQLX, Work};

/// Returns a load with more tasks than connections, so that some tasks wait.
fn a_moment_of(work: Work) -> Load {
    Load {
        work,
        tasks: 12,
        lasts: Duration::from_millis(250),
        seed: 1,
    }
}

fn wait_for<T>(work: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work)
}

#[test]
fn every_peer_answers_on_the_databases_it_knows() {
    let floors = FLOORS.iter().flat_map(|(_, entries)| *entries);
    for (database, round) in SQLX.iter().chain(DEADPOOL).chain(floors) {
        let home = Home::make(*database).unwrap();
        for work in [Work::One, Work::Mix] {
            let figures = round(home.url().to_owned(), a_moment_of(work));

            let names = figures.iter().map(|figure| figure.0).collect::<Vec<_>>();
            let values: Vec<f64> = figures.iter().map(|figure| figure.1).collect();
            assert!(values.iter().all(|value| *value > 0.0), "{figures:?}");
            let (expected, rising): (&[&str], &[&[usize]]) = match work {
                Work::One => (&["p50 µs", "p99 µs", "p99.9 µs"], &[&[1, 2, 3]]),
                Work::Mix => (
                    &["read p50 µs", "read p99 µs", "write p50 µs", "write p99 µs"],
                    &[&[1, 2], &[3, 4]],
                ),
            };
            assert_eq!(names[1..names.len() - 1], *expected);
            assert_eq!((names[0], names[names.len() - 1]), ("kops/s", "cpu µs"));
            for places in rising {
                assert!(
                    places.is_sorted_by_key(|place| values[*place]),
                    "{figures:?}"
                );
            }
        }
    }
}

#[test]
fn a_mix_changes_rows_and_selects_do_not() {
    let home = Home::make(Database::Sqlite).unwrap();
    let changes = || {
        let sum = "SELECT sum(amount) FROM amounts HAVING count(*) = $1";
        wait_for(async {
            let mut connection = SqliteConnection::connect(home.url()).await.unwrap();
            let sum = sqlx::query_scalar::<_, i64>(sum).bind(ROWS);
            sum.fetch_one(&mut connection).await.unwrap()
        })
    };
    let round = SQLX[1].1;
    let to_prepare = super::SIZE as i64;

    round(home.url().to_owned(), a_moment_of(Work::One));
    assert_eq!(changes(), to_prepare);

    round(home.url().to_owned(), a_moment_of(Work::Mix));
    assert!(changes() > 2 * to_prepare);
}

#[test]
fn a_home_on_a_server_leaves_nothing_behind() {
    let mut home = Home::make(Database::Postgres).unwrap();
    let url = home.url().to_owned();
    let tables = || {
        let tables =
            "SELECT count(*) FROM pg_tables WHERE schemaname = current_setting('search_path')";
        wait_for(async {
            let mut connection = PgConnection::connect(&url).await.unwrap();
            let tables = sqlx::query_scalar::<_, i64>(tables);
            tables.fetch_one(&mut connection).await.unwrap()
        })
    };
    assert_eq!(tables(), 1);

    home.clear();

    assert_eq!(tables(), 0);
}
