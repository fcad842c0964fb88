//! Routes that run in a transaction.

use crate::rig::Rig;
use crate::server::{config_of, serve};

#[tokio::test]
async fn the_status_decides_whether_a_request_is_committed() {
    let rig = Rig::without_db("statuses");
    let server = serve(config_of(&rig), &rig).await;
    let statuses = [
        (200, true),
        (201, true),
        (302, true),
        (400, false),
        (404, false),
        (409, false),
        (500, false),
        (503, false),
    ];

    for (id, (status, _)) in (1..).zip(statuses) {
        let answer = server.get(&format!("/in/insert/{id}/{status}")).await;
        assert_eq!(answer.status, status);
        let by_guard = format!("/in/insert_by_guard/{}/{status}", id + 100);
        assert_eq!(server.get(&by_guard).await.status, status);
    }

    let committed = statuses.iter().filter(|(_, committed)| *committed).count();
    assert_eq!(rig.rows().await, 2 * committed as i64);
    rig.until_whole().await;
}

#[tokio::test]
async fn without_a_transaction_the_status_decides_nothing() {
    let rig = Rig::without_db("outside");
    let server = serve(config_of(&rig), &rig).await;

    assert_eq!(server.get("/insert/1/409").await.status, 409);

    assert_eq!(rig.rows().await, 1);
}

#[tokio::test]
async fn a_panic_rolls_back() {
    let rig = Rig::without_db("panics");
    let server = serve(config_of(&rig), &rig).await;

    for id in 1..=10 {
        let answer = server.get(&format!("/in/insert_and_panic/{id}")).await;
        assert_eq!(answer.status, 500);
    }

    assert_eq!(rig.rows().await, 0);
    rig.until_whole().await;
}

#[tokio::test]
async fn a_failed_guard_and_a_forward_roll_back() {
    let rig = Rig::without_db("guards");
    let server = serve(config_of(&rig), &rig).await;

    assert_eq!(server.get("/in/insert_and_fail_a_guard").await.status, 401);
    assert_eq!(rig.rows().await, 0);
    assert_eq!(server.get("/in/insert_and_forward").await.body, "forwarded");

    assert_eq!(rig.rows().await, 1, "that of the route behind the forward");
    rig.until_whole().await;
}

#[tokio::test]
async fn a_commit_that_fails_is_a_500_and_nothing_of_the_body_is_sent() {
    let rig = Rig::without_db("orphans");
    let server = serve(config_of(&rig), &rig).await;

    let answer = server.get("/in/orphan/1").await;

    assert_eq!(answer.status, 500);
    assert!(!answer.body.contains("must not be sent"), "{}", answer.body);
    let children = rig.number("SELECT count(*) FROM {}_child").await.unwrap();
    assert_eq!(children, 0);
    rig.until_whole().await;
}
