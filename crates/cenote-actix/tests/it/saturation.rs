//! Pools that have nothing to lend.

use actix_web::App;
use cenote_actix::{RequestScope, Transactional};
use cenote_sqlx::Db;

use crate::client::{Answer, until};
use crate::handlers::routes;
use crate::rig::Rig;
use crate::server::{Server, serve};

fn scoped(rig: &Rig) -> Server {
    let rig = rig.clone();
    serve(move || App::new().configure(routes(&rig)).wrap(RequestScope::new()))
}

fn assert_busy(answer: &Answer) {
    assert_eq!(answer.status, 503);
    let after: u64 = answer.headers["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=60).contains(&after), "{after}");
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    let told = ["cenote", "tests/it", "SELECT"];
    assert!(
        told.iter().all(|text| !answer.body.contains(text)),
        "{}",
        answer.body
    );
}

#[tokio::test]
async fn a_dry_pool_is_a_503_with_retry_after() {
    let rig = Rig::impatient("dry", 2).await;
    let server = scoped(&rig);
    let holders = [server.send("/hold").await, server.send("/hold").await];
    rig.until_at_gate(2).await;

    let answers = [server.get("/rows").await, server.get("/hold").await];

    answers.iter().for_each(assert_busy);
    assert_eq!(server.get("/plain").await.status, 200);
    rig.open_gate(2);
    until("the holders are done", || {
        rig.db().pool().status().in_use == 0
    })
    .await;
    assert_eq!(server.get("/rows").await.status, 200);
    drop(holders);
    rig.until_whole().await;
}

#[tokio::test]
async fn a_tripped_breaker_is_a_503_with_retry_after() {
    let rig = Rig::new("tripped").await;
    let server = scoped(&rig);

    rig.db().pool().breaker().trip();
    let answer = server.get("/rows").await;

    assert_busy(&answer);
    rig.db().pool().breaker().reset();
    assert_eq!(server.get("/rows").await.status, 200);
    rig.until_whole().await;
}

#[tokio::test]
async fn a_dry_pool_in_a_transaction_is_a_503_and_rolls_nothing_back() {
    let rig = Rig::impatient("dry_transaction", 1).await;
    let at_work = rig.clone();
    let server = serve(move || {
        let transactional = Transactional::new(at_work.db().clone());
        App::new().configure(routes(&at_work)).wrap(transactional)
    });
    let holder = rig.db().acquire().await.unwrap();

    assert_busy(&server.get("/insert/1/200").await);

    drop(holder);
    assert_eq!(server.get("/insert/1/200").await.status, 200);
    rig.until_whole().await;
}

#[tokio::test]
async fn an_unknown_database_is_a_503_without_retry_after() {
    let rig = Rig::without_db("denied");
    let url = rig.url().replace("/postgres?", "/no_such_database?");
    let db = Db::postgres(url).build().unwrap();
    let server = {
        let db = db.clone();
        serve(move || {
            let db = db.clone();
            let handler = move || {
                let db = db.clone();
                async move {
                    let one = sqlx::query("SELECT 1").execute(&db).await;
                    one.map(|_| "never").map_err(cenote_actix::Problem::from)
                }
            };
            App::new().route("/", actix_web::web::get().to(handler))
        })
    };

    let answer = server.get("/").await;

    assert_eq!(answer.status, 503);
    assert!(!answer.headers.contains_key("retry-after"));
    assert!(!answer.body.contains("no_such_database"));
}
