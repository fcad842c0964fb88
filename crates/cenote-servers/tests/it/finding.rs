//! The search looks in the environment first.

use std::process::{Command, Output, Stdio};

use cenote_servers::{mariadb, nats, pgbouncer, postgres, redis};

fn find(variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cenote-servers"))
        .arg("find")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("the program was built for this test")
}

#[test]
fn servers_that_the_environment_names_are_used() {
    let (postgres, mariadb) = (postgres::start().unwrap(), mariadb::start().unwrap());
    let redis = redis::start_with(&[("requirepass", "secret")]).unwrap();
    let pgbouncer = pgbouncer::start(postgres.url()).unwrap();
    let nats = nats::start().unwrap();
    let redis_url = redis.url().replace("//", "//:secret@");

    let found = find(&[
        ("CENOTE_POSTGRES_URL", postgres.url()),
        ("CENOTE_MYSQL_URL", mariadb.url()),
        ("CENOTE_REDIS_URL", &redis_url),
        ("CENOTE_NATS_URL", nats.url()),
        ("CENOTE_PGBOUNCER_URL", pgbouncer.url()),
    ]);

    let shown = String::from_utf8(found.stdout).unwrap();
    for (name, variable, url) in [
        ("PostgreSQL", "CENOTE_POSTGRES_URL", postgres.url()),
        ("MariaDB", "CENOTE_MYSQL_URL", mariadb.url()),
        ("Redis", "CENOTE_REDIS_URL", redis_url.as_str()),
        ("NATS", "CENOTE_NATS_URL", nats.url()),
        ("PgBouncer", "CENOTE_PGBOUNCER_URL", pgbouncer.url()),
    ] {
        let line = format!("{variable}={url} # {name}: named by {variable}\n");
        assert!(shown.contains(&line), "{line}{shown}");
    }
}

#[test]
fn a_named_server_that_is_not_there_is_an_error() {
    let mut gone = postgres::start().unwrap();
    gone.stop().unwrap();

    let found = find(&[("CENOTE_POSTGRES_URL", gone.url())]);

    let said = String::from_utf8(found.stderr).unwrap();
    assert!(!found.status.success());
    for part in ["no PostgreSQL", "CENOTE_POSTGRES_URL", "refused", "unset"] {
        assert!(said.contains(part), "{said}");
    }
}
