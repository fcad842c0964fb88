//! The conformance suite for managers.

use cenote_redis::Session;
use cenote_testkit::conformance::Conformance;
use redis::cmd;

use crate::admin::Admin;
use crate::{builder, id, patient};

#[tokio::test]
async fn the_manager_conforms() {
    conforms("").await;
}

#[tokio::test]
async fn the_manager_conforms_with_resp3() {
    conforms("?protocol=resp3").await;
}

async fn conforms(parameters: &str) {
    let server = cenote_servers::redis::start().unwrap();
    let url = format!("{}{parameters}", server.url());
    let pool = patient(&url).mux(0).build().unwrap();
    let admin = Admin::of(server.url()).await;
    let counter = admin.clone();

    Conformance::new(pool.pool().manager().clone())
        .kill(async move |session: &mut Session| {
            let id = id(session).await;
            admin.clone().kill(id).await;
        })
        .dirty(
            async |session: &mut Session| {
                cmd("SELECT").arg(7).exec_async(session).await.unwrap();
                cmd("MULTI").exec_async(session).await.unwrap();
            },
            async |session: &mut Session| {
                let info = cmd("CLIENT")
                    .arg("INFO")
                    .query_async::<String>(session)
                    .await
                    .unwrap();
                info == "QUEUED" || info.contains(" db=7 ")
            },
        )
        .count(async move || counter.clone().others().await.len())
        .run()
        .await;
}

#[tokio::test]
async fn a_severed_connection_fails_its_holder() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let pool = builder(&server).mux(0).build().unwrap();
    let mut lease = pool.acquire().await.unwrap();
    let pop = tokio::spawn(async move {
        let pop = cmd("BLPOP").arg("jobs").arg(0).to_owned();
        pop.exec_async(&mut lease).await
    });
    admin.sees(1, "blpop").await;

    let left = pool
        .close_within(std::time::Duration::from_millis(20))
        .await;
    assert_eq!(left.leases.len(), 1);
    assert_eq!(pool.pool().sever(), 1);

    assert!(pop.await.unwrap().unwrap_err().is_connection_dropped());
    assert!(pool.close_within(crate::LIMIT).await.is_empty());
}
