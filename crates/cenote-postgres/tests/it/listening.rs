//! Notifications and notices.

use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use tokio::time::timeout;

use crate::{Admin, LIMIT, builder, eventually, pool, url};

#[tokio::test]
async fn a_lease_that_listens_gets_notifications() {
    let (pool, other) = (pool(1), Admin::at(url()).await);
    let channel = format!("cenote_pg_{}", std::process::id());
    let lease = pool.acquire().await.unwrap();
    let mut heard = lease.notifications();
    lease
        .batch_execute(&format!("listen {channel}"))
        .await
        .unwrap();

    for text in ["one", "two"] {
        let notify = format!("notify {channel}, '{text}'");
        other.0.batch_execute(&notify).await.unwrap();
    }

    let first = timeout(LIMIT, heard.recv()).await.unwrap().unwrap();
    let second = timeout(LIMIT, heard.next()).await.unwrap().unwrap();
    assert_eq!((first.payload(), second.payload()), ("one", "two"));
    drop(heard);
    drop(lease);
    let lease = pool.acquire().await.unwrap();
    let listens = lease.query("select pg_listening_channels()", &[]).await;
    assert!(
        listens.unwrap().is_empty(),
        "the next user listens to nothing"
    );
}

#[tokio::test]
async fn notifications_end_with_their_connection() {
    let server = cenote_servers::postgres::start().unwrap();
    let pool = crate::builder_at(server.url(), 1).build().unwrap();
    let admin = Admin::at(server.url()).await;
    let lease = pool.acquire().await.unwrap();
    let mut heard = lease.notifications();

    admin.kill(lease.backend().unwrap()).await;

    let end = timeout(LIMIT, heard.recv()).await.expect("it ends");
    assert!(end.is_none());
    let after = timeout(LIMIT, lease.notifications().recv())
        .await
        .expect("it has ended");
    assert!(after.is_none());
}

#[tokio::test]
async fn notices_are_heard_and_a_panic_there_does_no_harm() {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = Arc::clone(&heard);
    let pool = builder(1)
        .on_notice(move |notice| {
            told.lock().unwrap().push(notice.message().to_owned());
            panic!("planned");
        })
        .build()
        .unwrap();
    let raise = "do $$ begin raise notice 'hello'; end $$";

    for _ in 0..2 {
        pool.batch_execute(raise).await.unwrap();
    }

    let hellos = || {
        let heard = heard.lock().unwrap();
        heard.iter().filter(|text| *text == "hello").count()
    };
    eventually("both are heard", async || hellos() == 2).await;
    assert_eq!(pool.status().opened, 1, "the connection is kept");
}
