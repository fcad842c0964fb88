//! User code that calls back: observers, wakers and managers that use the pool in the middle of one
//! of its own calls, as another thread could. They poll or drop acquires that their clients left
//! behind, or control the whole pool.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::client::{Asking, End, give_back_now};
use super::knobs::{self, Knob};
use super::outcome::Got;
use super::wakes;
use super::world::Sim;

/// While it lives, the simulation calls the pool. User code that the pool calls meanwhile may call
/// back.
#[derive(Debug)]
pub(super) struct Calling<'a>(&'a Sim);

impl<'a> Calling<'a> {
    pub(super) fn begin(sim: &'a Sim) -> Self {
        sim.world().calls += 1;
        Self(sim)
    }
}

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        self.0.world().calls -= 1;
    }
}

/// Called by every waker.
pub(super) fn in_waker(sim: &Arc<Sim>) {
    sim.world().waking += 1;
    meddle(sim, "a waker");
    sim.world().waking -= 1;
}

/// Called by observers and managers. Every waiter that must be woken was woken before.
pub(super) fn in_callback(sim: &Arc<Sim>, whose: &'static str) {
    wakes::check_within(sim);
    meddle(sim, whose);
}

fn meddle(sim: &Arc<Sim>, whose: &'static str) {
    let draw = {
        let mut world = sim.world();
        // Without a call of the pool, the timer of the runtime may be the one that wakes.
        let may = world.calls > 0 && !world.meddling && !world.healed && !world.is_broken();
        if !may || world.rngs.meddle.u8(0..100) >= sim.plan.meddle {
            return;
        }
        world.meddling = true;
        world.note(whose, "calls back");
        world.rngs.meddle.u8(0..12)
    };
    match draw {
        0..=4 => visit(sim, whose),
        5 => drop(sim.adopt()),
        6..=7 => turn(sim, whose, Knob::Trip),
        8..=9 => turn(sim, whose, Knob::Reset),
        10 => turn(sim, whose, Knob::Suspend),
        _ => turn(sim, whose, Knob::Resume),
    }
    sim.world().meddling = false;
}

fn turn(sim: &Arc<Sim>, whose: &'static str, knob: Knob) {
    if let Some(pool) = sim.watched() {
        knobs::turn(sim, &pool, whose, knob);
    }
}

/// Polls an acquire that its client left behind. It returns a lease at once.
fn visit(sim: &Arc<Sim>, whose: &'static str) {
    let Some(mut asking) = sim.adopt() else {
        return;
    };
    sim.note(whose, "polls an acquire that was left behind");
    match poll_once(&mut asking, Waker::noop()) {
        Poll::Ready(Ok(Got::Lease(lease))) => {
            give_back_now(sim, asking.client(), lease, End::Dropped);
        }
        Poll::Ready(Ok(Got::Permit(permit))) => {
            sim.world().permit_is_gone();
            drop(permit);
        }
        Poll::Ready(Ok(Got::Nothing) | Err(_)) => {}
        Poll::Pending => sim.leave_behind(asking),
    }
}

fn poll_once(asking: &mut Pin<Box<Asking>>, waker: &Waker) -> Poll<super::outcome::Acquired> {
    asking.doze(false);
    let polled = asking.as_mut().poll(&mut Context::from_waker(waker));
    asking.doze(true);
    polled
}
