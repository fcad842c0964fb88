//! The conformance suite for managers.

use std::sync::Arc;

use cenote_mysql::Session;
use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_testkit::conformance::Conformance;
use tokio::sync::Mutex;

use crate::rig::{Rig, kill, sessions};

#[tokio::test]
async fn the_manager_conforms() {
    let rig = Rig::new("conforms").await;
    let killer = Arc::new(Mutex::new(rig.admin().await));
    let counter = Arc::new(Mutex::new(rig.admin().await));
    let mark = rig.mark.clone();

    Conformance::new(rig.pool.manager().clone())
        .kill(async move |session: &mut Session| {
            kill(&mut *killer.lock().await, session.id()).await
        })
        .dirty(
            async |session: &mut Session| {
                session.query_drop("SET @x = 1; BEGIN").await.unwrap();
            },
            async |session: &mut Session| {
                let dirt = "SELECT @x IS NOT NULL OR @@in_transaction";
                session.query_first(dirt).await.unwrap() == Some(1)
            },
        )
        .count(async move || sessions(&mut *counter.lock().await, &mark).await)
        .limit(crate::rig::PATIENCE)
        .run()
        .await;
}
