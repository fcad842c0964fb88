//! Whatever a lease leaves behind is undone before the next use.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use cenote_redis::{Lease, Pool};
use cenote_servers::Server;
use redis::{AsyncCommands, Cmd, ConnectionAddr, IntoConnectionInfo, ProtocolVersion, cmd, pipe};

use crate::admin::Admin;
use crate::{LIMIT, builder, eventually, id, patient};

/// A pool with one connection, so that the next user gets the same one.
fn one(server: &Server) -> Pool {
    let one = builder(server).max_size(1).check_after_idle(None);
    one.build().unwrap()
}

async fn run(lease: &mut Lease, text: &str) {
    let mut words = text.split(' ');
    let mut command = cmd(words.next().unwrap());
    command.arg(words.collect::<Vec<_>>());
    command.exec_async(lease).await.unwrap();
}

/// Leaves something behind, and returns the next lease of the same connection.
async fn next_after(pool: &Pool, left: &[&str]) -> Lease {
    let mut lease = pool.acquire().await.unwrap();
    let first = id(&mut lease).await;
    for text in left {
        run(&mut lease, text).await;
    }
    drop(lease);
    let mut next = pool.acquire().await.unwrap();
    assert_eq!(
        id(&mut next).await,
        first,
        "the connection was cleaned, not closed"
    );
    next
}

#[tokio::test]
async fn a_transaction_that_was_left_open_is_gone_for_the_next_user() {
    let server = cenote_servers::redis::start().unwrap();

    let mut next = next_after(&one(&server), &["MULTI", "SET k left"]).await;

    let value: Option<String> = next.get("k").await.unwrap();
    assert_eq!(value, None);
    let () = next.set("k", "new").await.unwrap();
    let value: String = next.get("k").await.unwrap();
    assert_eq!(value, "new", "it is not queued");
}

#[tokio::test]
async fn a_watch_that_was_left_behind_does_not_fail_the_next_users_transaction() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;

    let mut next = next_after(&one(&server), &["WATCH k"]).await;
    let () = admin.say("SET k other").await;

    let done: Option<((),)> = pipe()
        .atomic()
        .set("k", 1)
        .query_async(&mut next)
        .await
        .unwrap();
    assert!(done.is_some());
}

#[tokio::test]
async fn a_watch_that_still_holds_fails_its_transaction() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let mut lease = one(&server).acquire().await.unwrap();
    run(&mut lease, "WATCH k").await;
    let () = admin.say("SET k other").await;

    let done: Option<((),)> = pipe()
        .atomic()
        .set("k", 1)
        .query_async(&mut lease)
        .await
        .unwrap();

    assert!(done.is_none());
}

#[tokio::test]
async fn another_database_is_left_for_that_of_the_url() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let pool = patient(&format!("{}/3", server.url()))
        .max_size(1)
        .build()
        .unwrap();

    let mut next = next_after(&pool, &["SELECT 5"]).await;
    let () = next.set("k", "v").await.unwrap();

    let () = admin.say("SELECT 3").await;
    let value: String = admin.say("GET k").await;
    assert_eq!(value, "v");
}

#[tokio::test]
async fn a_name_and_tracking_are_undone() {
    let server = cenote_servers::redis::start().unwrap();
    let url = format!("{}?protocol=resp3", server.url());
    let pool = patient(&url).max_size(1).build().unwrap();

    let left = [
        "CLIENT SETNAME me",
        "CLIENT TRACKING ON",
        "CLIENT NO-EVICT ON",
    ];
    let mut next = next_after(&pool, &left).await;

    let name: Option<String> = cmd("CLIENT")
        .arg("GETNAME")
        .query_async(&mut next)
        .await
        .unwrap();
    assert_eq!(name.unwrap_or_default(), "");
    let info: String = cmd("CLIENT")
        .arg("INFO")
        .query_async(&mut next)
        .await
        .unwrap();
    assert!(
        info.contains("resp=3") && info.contains("flags=N "),
        "{info}"
    );
}

#[tokio::test]
async fn another_user_is_left_for_that_of_the_url() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let () = admin
        .say("ACL SETUSER app on >secret-word ~* &* +@all")
        .await;
    let () = admin
        .say("ACL SETUSER guest on >guest-word ~* &* +@all")
        .await;
    for protocol in [ProtocolVersion::RESP2, ProtocolVersion::RESP3] {
        let info = ConnectionAddr::Tcp("127.0.0.1".into(), server.addr().port());
        let info = info.into_connection_info().unwrap();
        let login = info.redis_settings().clone().set_protocol(protocol);
        let login = login
            .set_username("app")
            .set_password("secret-word")
            .set_db(1);
        let pool = Pool::from_connection_info(info.set_redis_settings(login));
        let pool = pool.max_size(1).acquire_timeout(LIMIT).build().unwrap();

        let mut next = next_after(&pool, &["AUTH guest guest-word", "SELECT 2"]).await;

        let user: String = cmd("ACL")
            .arg("WHOAMI")
            .query_async(&mut next)
            .await
            .unwrap();
        assert_eq!(user, "app");
        let info: String = cmd("CLIENT")
            .arg("INFO")
            .query_async(&mut next)
            .await
            .unwrap();
        assert!(info.contains(" db=1 "), "{info}");
    }
}

#[tokio::test]
async fn a_clean_lease_costs_no_round_trip() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let pool = one(&server);
    drop(pool.acquire().await.unwrap());
    let () = admin.say("CONFIG RESETSTAT").await;

    for _ in 0..10 {
        let mut lease = pool.acquire().await.unwrap();
        run(&mut lease, "WATCH k").await;
        run(&mut lease, "UNWATCH").await;
        run(&mut lease, "MULTI").await;
        run(&mut lease, "DISCARD").await;
        Lease::release(lease).await;
    }

    let stats: String = admin.say("INFO commandstats").await;
    assert!(stats.contains("cmdstat_unwatch:calls=10,"), "{stats}");
    assert!(
        !stats.contains("cmdstat_reset:") && !stats.contains("cmdstat_ping:"),
        "{stats}"
    );
}

/// A server before 6.2 has no `RESET`.
#[tokio::test]
async fn a_dirty_connection_is_closed_where_the_server_has_no_reset() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let file = folder.path().join("more.conf");
    fs::write(&file, "rename-command RESET \"\"\n").unwrap();
    let settings = [("include", file.to_str().unwrap())];
    let server = cenote_servers::redis::start_with(&settings).unwrap();
    let pool = one(&server);
    let mut lease = pool.acquire().await.unwrap();
    let first = id(&mut lease).await;
    run(&mut lease, "SELECT 5").await;

    drop(lease);

    let mut next = pool.acquire().await.unwrap();
    assert_ne!(id(&mut next).await, first);
}

#[tokio::test]
async fn a_detached_session_goes_on_without_the_pool() {
    let server = cenote_servers::redis::start().unwrap();
    let pool = one(&server);
    let mut admin = Admin::of(server.url()).await;
    let mut session = Lease::detach(pool.acquire().await.unwrap());

    let () = session.set("k", "v").await.unwrap();

    assert_eq!(pool.status().total, 0);
    drop(session);
    eventually("the connection is closed", async || {
        admin.others().await.is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_command_that_no_pooled_connection_can_run_is_not_sent() {
    let server = cenote_servers::redis::start().unwrap();
    let mut lease = one(&server).acquire().await.unwrap();
    let refused = async |command: &Cmd, lease: &mut Lease| {
        let error = command.exec_async(lease).await.unwrap_err();
        error.to_string()
    };

    let monitor = refused(&cmd("MONITOR"), &mut lease).await;
    let silence = refused(cmd("CLIENT").arg("REPLY").arg("OFF"), &mut lease).await;
    let subscribe = refused(cmd("SUBSCRIBE").arg("news"), &mut lease).await;

    assert!(monitor.contains("get_async_monitor"), "{monitor}");
    assert!(silence.contains("set_no_response"), "{silence}");
    assert!(subscribe.contains("protocol=resp3"), "{subscribe}");
    run(&mut lease, "PING").await;
}
