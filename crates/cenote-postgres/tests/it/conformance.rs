//! The public conformance suite for managers.

use cenote_postgres::{Postgres, Session};
use cenote_testkit::conformance::Conformance;

use crate::{Admin, builder_at, eventually};

fn manager(url: &str, name: &str) -> Postgres {
    let sign = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{sign}application_name={name}");
    builder_at(&url, 1).build().unwrap().manager().clone()
}

async fn suite(url: &str, name: &str) -> Conformance<Postgres> {
    let (killer, counter) = tokio::join!(Admin::at(url), Admin::at(url));
    let count = format!("select count(*) from pg_stat_activity where application_name = '{name}'");
    Conformance::new(manager(url, name))
        .kill(async move |session: &mut Session| {
            killer.kill(session.backend().unwrap()).await;
            eventually("the client knows", async || session.is_closed()).await;
        })
        .count(async move || usize::try_from(counter.count(&count).await).unwrap())
}

async fn shows(session: &mut Session, sql: &str) -> String {
    session.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn the_manager_conforms_with_dirty_settings() {
    let server = cenote_servers::postgres::start().unwrap();

    let suite = suite(server.url(), "settings").await.dirty(
        async |session: &mut Session| {
            let set = session.batch_execute("set lock_timeout = '7s'").await;
            set.unwrap();
        },
        async |session: &mut Session| shows(session, "show lock_timeout").await == "7s",
    );

    suite.run().await;
}

#[tokio::test]
async fn the_manager_conforms_with_open_transactions() {
    let server = cenote_servers::postgres::start().unwrap();

    let suite = suite(server.url(), "transactions").await.dirty(
        async |session: &mut Session| {
            session.batch_execute("begin read only").await.unwrap();
        },
        async |session: &mut Session| shows(session, "show transaction_read_only").await == "on",
    );

    suite.run().await;
}

/// The statement is still running when the session is cleaned. It takes longer than the suite
/// allows a clean to take. The suite looks at the dirt once, and that look waits for its end.
#[tokio::test]
async fn the_manager_conforms_with_dropped_statements() {
    let server = cenote_servers::postgres::start().unwrap();

    let suite = suite(server.url(), "dropped").await.dirty(
        async |session: &mut Session| {
            session
                .batch_execute("set lock_timeout = '7s'")
                .await
                .unwrap();
            let late = session.execute("select pg_sleep(12)", &[]);
            let late = tokio::time::timeout(std::time::Duration::from_millis(20), late);
            assert!(late.await.is_err());
        },
        async |session: &mut Session| shows(session, "show lock_timeout").await == "7s",
    );

    suite.run().await;
}
