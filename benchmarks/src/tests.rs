//! The promises of cenote that do not depend on the speed of the machine.

#[cfg(feature = "peers")]
use std::time::Duration;

use crate::harness::runtime::Runtime;
#[cfg(feature = "peers")]
use crate::harness::sql::{Database, Home, Load, Work};

use crate::contender;

#[test]
fn cenote_weathers_the_storm() {
    let cenote = contender("cenote").unwrap();
    for runtime in Runtime::ALL {
        let figures = (cenote.storm)(runtime, 1);
        let figure = |name| figures.iter().find(|figure| figure.0 == name).unwrap().1;

        for must_be_zero in ["lost slots", "stuck waiters", "over max"] {
            assert_eq!(
                figure(must_be_zero),
                0.0,
                "{must_be_zero}, {}",
                runtime.name()
            );
        }
    }
}

#[test]
fn cenote_keeps_a_connect_that_its_caller_gave_up() {
    let cenote = contender("cenote").unwrap();

    let figures = (cenote.impatient)(Runtime::CurrentThread);

    assert!(figures.contains(&("connects", 1.0)), "{figures:?}");
}

#[cfg(feature = "peers")]
#[test]
fn cenote_answers_on_every_database() {
    for (name, database) in [
        ("cenote", Database::Postgres),
        ("cenote", Database::Sqlite),
        ("cenote-postgres", Database::Postgres),
    ] {
        let contender = contender(name).unwrap();
        let mut entries = contender.sql.iter();
        let (_, round) = entries.find(|entry| entry.0 == database).unwrap();
        let home = Home::make(database).unwrap();
        let load = Load {
            work: Work::Mix,
            tasks: 12,
            lasts: Duration::from_millis(250),
            seed: 1,
        };

        let figures = round(home.url().to_owned(), load);

        assert!(figures[0].1 > 0.0, "{name}, {database:?}: {figures:?}");
    }
}
