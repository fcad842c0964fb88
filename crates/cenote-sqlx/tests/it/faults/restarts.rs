//! A server that goes away under load, and comes back.

use std::sync::Arc;
use std::time::Duration;

use cenote::OnOpenError;
use cenote_servers::Server;
use cenote_testkit::clock::timed;
use tokio::time::sleep;

use super::load::Load;
use super::world;
use super::{LONGEST, Trial, back_off};

/// Long enough that nobody but the pool gives up.
const PATIENCE: Duration = Duration::from_secs(20);

/// Load, the end of the server, its return, and load again.
async fn away_and_back(name: &str, retry: OnOpenError, end: fn(&mut Server)) {
    let server = world::start(&[]);
    let dress = move |builder: cenote_sqlx::Builder<_>| builder.on_open_error(retry);
    let trial = Arc::new(Trial::on(server.url(), name, dress).await);
    let load = Load::on(&trial, PATIENCE).await;

    let away = async {
        let server = blocking(server, end).await;
        sleep(Duration::from_millis(300)).await;
        blocking(server, |server| server.restart().unwrap()).await
    };
    let (_server, away) = timed(away).await;
    let within = match retry {
        OnOpenError::Fail => back_off(away),
        // Those that are tried at once make it longer for each other.
        OnOpenError::Retry => LONGEST,
    };
    trial.first_success(1_000_000, within).await;
    load.flows().await;
    let (failed, next) = load.stop().await;

    assert!(failed > 0, "it was no test");
    let acknowledged = trial.acknowledged.lock().unwrap().len();
    println!("{name}: away for {away:?}, {acknowledged} acknowledged, {failed} failed");
    // Those that were idle when it went away may not have been used since.
    trial.db.pool().invalidate();
    // An open that rests between two tries counts as on its way.
    trial.assert_recovered(next, LONGEST).await;
}

async fn blocking(mut server: Server, work: impl FnOnce(&mut Server) + Send + 'static) -> Server {
    let work = move || {
        work(&mut server);
        server
    };
    tokio::task::spawn_blocking(work).await.unwrap()
}

#[tokio::test]
async fn a_server_that_is_restarted_under_load_loses_no_acknowledged_commit() {
    let stop = |server: &mut Server| server.stop().unwrap();
    away_and_back("restarted", OnOpenError::Fail, stop).await;
}

#[tokio::test]
async fn a_server_that_is_killed_under_load_loses_no_acknowledged_commit() {
    let kill = |server: &mut Server| server.kill().unwrap();
    away_and_back("crashed", OnOpenError::Retry, kill).await;
}
