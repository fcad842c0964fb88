//! An application runs in a sandbox without a change.

use cenote_tower::{ScopeLayer, TransactionalLayer};
use futures_util::future::join_all;

use super::Rig;
use super::world::{self, Db};
use crate::client::serve;

#[tokio::test]
async fn an_application_runs_in_a_sandbox_and_leaves_nothing() {
    let outside = Rig::new("in_sandbox").await;
    let db = Db::sandbox(world::url(&outside.table, &outside._home)).await;
    let rig = Rig {
        db: db.unwrap(),
        ..outside.clone()
    };
    let transactional = TransactionalLayer::new(rig.db.clone());
    let routes = rig.routes().layer(transactional).layer(ScopeLayer::new());
    let server = serve(routes).await;

    let paths = (0..20).map(|id| match id % 4 {
        0 => format!("/insert_and_fail/{id}"),
        1 => format!("/insert/{id}/404"),
        _ => format!("/insert/{id}/200"),
    });
    let paths: Vec<String> = paths.collect();
    let answers = join_all(paths.iter().map(|path| server.get(path))).await;

    let good = answers.iter().filter(|answer| answer.status == 200);
    assert_eq!(good.count(), 10);
    assert_eq!(server.get("/rows").await.body, "10");
    assert_eq!(outside.rows().await, 0, "another connection sees nothing");
    drop((server, rig));
    outside.insert(2).await.unwrap();
    assert_eq!(outside.rows().await, 1);
}
