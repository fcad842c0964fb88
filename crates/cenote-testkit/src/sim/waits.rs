//! The ways in which a client waits for an acquire, or leaves it.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::client::Asking;
use super::outcome::Acquired;
use crate::conformance::cut;

/// When a client gives up an acquire.
#[derive(Clone, Copy, Debug)]
pub(super) enum GivesUp {
    Never,
    AfterPolls(usize),
    After(Duration),
    /// It does not poll for so long, and then goes on.
    Dozes(Duration),
    /// It does not poll for so long, and then drops the acquire.
    DozesOff(Duration),
    /// It polls again and again, woken or not, and gives up in the end.
    Restless(Duration),
    /// It polls once and leaves the acquire to other clients.
    LeftBehind,
}

/// How often a restless client polls.
const LOOKS: usize = 6;

pub(super) async fn wait(mut asking: Pin<Box<Asking>>, gives_up: GivesUp) -> Option<Acquired> {
    match gives_up {
        GivesUp::Never | GivesUp::LeftBehind => Some(asking.await),
        GivesUp::AfterPolls(polls) => cut(polls, asking).await,
        GivesUp::After(limit) => timeout(limit, asking).await.ok(),
        GivesUp::Dozes(pause) => doze(asking, pause, true).await,
        GivesUp::DozesOff(pause) => doze(asking, pause, false).await,
        GivesUp::Restless(pause) => {
            for _ in 0..LOOKS {
                if let Ok(acquired) = timeout(pause / LOOKS as u32, &mut asking).await {
                    return Some(acquired);
                }
            }
            None
        }
    }
}

async fn doze(mut asking: Pin<Box<Asking>>, pause: Duration, wakes: bool) -> Option<Acquired> {
    if let Poll::Ready(acquired) = poll_once(&mut asking).await {
        return Some(acquired);
    }
    asking.doze(true);
    sleep(pause).await;
    if !wakes {
        return None;
    }
    asking.doze(false);
    Some(asking.await)
}

pub(super) async fn poll_once(asking: &mut Pin<Box<Asking>>) -> Poll<Acquired> {
    poll_fn(|context| Poll::Ready(asking.as_mut().poll(context))).await
}
