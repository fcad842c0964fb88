//! The keeper of a lane: a task that takes it out of use when its time has come.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::Poll;

use cenote::Config;

use super::Lanes;
use super::lane::Lane;
use crate::session::within;

/// Waits until the lane breaks, is retired or is too old, or the pool is closed. Then no more
/// commands come. The connection is closed after the last command in flight.
pub(super) fn keep(
    lanes: Weak<Lanes>,
    lane: Arc<Lane>,
    config: &Config,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let shorter = 1.0 - config.lifetime_jitter * fastrand::f64();
    let lifetime = config.max_lifetime.map(|most| most.mul_f64(shorter));
    Box::pin(async move {
        // An old lane is replaced before it leaves. If that fails, it stays for another lifetime.
        while within(lifetime, is_over(&lane)).await.is_none() {
            let Some(lanes) = lanes.upgrade() else { return };
            if lanes.open().await.is_ok() {
                break;
            }
        }
        if let Some(lanes) = lanes.upgrade() {
            lanes.retire(&lane);
        }
    })
}

async fn is_over(lane: &Lane) {
    let mut breaks = pin!(lane.session.wire.ended());
    let mut closes = pin!(lane.slot.pool_closed());
    let mut retires = pin!(lane.retire.notified());
    poll_fn(|context| {
        let over = breaks.as_mut().poll(context).is_ready()
            || closes.as_mut().poll(context).is_ready()
            || retires.as_mut().poll(context).is_ready();
        if over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
