//! The wait for a place, in the task of an open.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::room::{Place, Share, Ticket};

/// The pauses between two looks: they double from the first to the longest. `room.rs` says why a
/// waiter has to look again. The first is short for an edge that was just missed. The longest is
/// what such an edge can cost a caller that has waited for long already.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// Waits for a place. Returns `None` if no caller of this key waits for it any more.
///
/// There are never more tickets than callers. After a second the pool of a key begins another open
/// beside one that waits, and a key would otherwise ask for many places on behalf of one caller.
///
/// # Cancel safety
/// Dropping this future gives up its place in the queue. A place already granted goes to the next
/// waiter.
pub(crate) async fn place(share: &Arc<Share>) -> Option<Place> {
    let mut pause = FIRST_PAUSE;
    loop {
        if let Some(place) = share.take() {
            return Some(place);
        }
        let callers = waiting(share);
        if callers == 0 {
            // A refill, or the open of a `try_acquire`, takes a free place and waits for none.
            return None;
        }
        let Some(mut ticket) = share.queue(callers) else {
            sleep(pause).await;
            pause = longer(pause);
            continue;
        };
        share.look();
        if let Some(place) = granted(share, &mut ticket, &mut pause).await {
            return (waiting(share) > 0).then_some(place);
        }
    }
}

/// Waits until a place is granted to `ticket`. Returns `None` if it was called off, or if fewer
/// callers wait than tickets.
async fn granted(share: &Share, ticket: &mut Ticket, pause: &mut Duration) -> Option<Place> {
    loop {
        if let Ok(ended) = timeout(*pause, &mut *ticket).await {
            return ended;
        }
        *pause = longer(*pause);
        if waiting(share) < share.tickets() {
            return None;
        }
        // One key looks on behalf of all.
        if share.is_first() {
            share.look();
        }
    }
}

fn longer(pause: Duration) -> Duration {
    (pause * 2).min(LONGEST_PAUSE)
}

/// How many callers of this key wait. A key that is gone has none.
fn waiting(share: &Share) -> usize {
    share.owner().map_or(0, |owner| owner.waiting())
}
