//! A server that stops under load and starts again.

use std::sync::Arc;
use std::time::Duration;

use cenote::config::OnOpenError;
use cenote_servers::Server;
use cenote_testkit::clock::timed;
use tokio::time::sleep;

use super::load::Load;
use super::world;
use super::{LONGEST, Trial, back_off};

/// Longer than the limits of the pool, so that no writer gives up before the pool does.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs load, stops the server, starts it again, and runs load again.
async fn stop_and_start(name: &str, retry: OnOpenError, end: fn(&mut Server)) {
    let server = world::start(&[]);
    let customize = move |builder: cenote_sqlx::Builder<_>| builder.on_open_error(retry);
    let trial = Arc::new(Trial::on(server.url(), name, customize).await);
    let load = Load::on(&trial, PATIENCE).await;

    let stopped = async {
        let server = blocking(server, end).await;
        sleep(Duration::from_millis(300)).await;
        blocking(server, |server| server.restart().unwrap()).await
    };
    let (_server, down) = timed(stopped).await;
    let within = match retry {
        OnOpenError::Fail => back_off(down),
        // Opens at the same time lengthen the back-off of each other.
        OnOpenError::Retry => LONGEST,
    };
    trial.first_success(1_000_000, within).await;
    load.flows().await;
    let (failed, next) = load.stop().await;

    assert!(failed > 0, "no write failed");
    let acknowledged = trial.acknowledged.lock().unwrap().len();
    println!("{name}: down for {down:?}, {acknowledged} acknowledged, {failed} failed");
    // Some idle connections may be dead and unnoticed.
    trial.db.pool().invalidate();
    // An open that waits between two tries counts as opening.
    trial.assert_recovered(next, LONGEST).await;
}

pub(super) async fn blocking(
    mut server: Server,
    work: impl FnOnce(&mut Server) + Send + 'static,
) -> Server {
    let work = move || {
        work(&mut server);
        server
    };
    tokio::task::spawn_blocking(work).await.unwrap()
}

#[tokio::test]
async fn a_server_that_is_restarted_under_load_loses_no_acknowledged_commit() {
    let stop = |server: &mut Server| server.stop().unwrap();
    stop_and_start("restarted", OnOpenError::Fail, stop).await;
}

#[tokio::test]
async fn a_server_that_is_killed_under_load_loses_no_acknowledged_commit() {
    let kill = |server: &mut Server| server.kill().unwrap();
    stop_and_start("crashed", OnOpenError::Retry, kill).await;
}
