//! The alarm's part of the ledger: when somebody must be woken to look again.

use super::{Ledger, Orders, Resource};
use crate::moment::Moment;

impl<R: Resource, F: Clone> Ledger<R, F> {
    /// Was the alarm ever set? One that was overtaken may still be.
    pub(crate) fn was_alarm_set(&self) -> bool {
        self.queue.joined() > 0
    }

    /// One who waits must be woken by then.
    pub(super) fn set_alarm(&mut self, look_at: Option<Moment>, orders: &mut Orders<R>) {
        let Some(at) = look_at else { return };
        if self.alarm_at.is_none_or(|set| at < set) {
            self.alarm_at = look_at;
            orders.alarm = look_at;
        }
    }

    /// The alarm that was set for `at` goes off: wakes whoever must look again. Answers with when it must go off next. One that was
    /// set before it for later means nothing any more.
    pub(crate) fn alarm(&mut self, at: Moment, now: Moment) -> (Option<Moment>, Orders<R>) {
        let mut orders = Orders::default();
        if self.alarm_at != Some(at) {
            return (None, orders);
        }
        let mut next: Option<Moment> = None;
        self.queue.each_in_line(|waiter| match waiter.look_at {
            Some(at) if at <= now => {
                waiter.look_at = None;
                orders.wake_soon(waiter.waker.take());
            }
            Some(at) => next = Some(next.map_or(at, |next| next.min(at))),
            None => {}
        });
        self.alarm_at = next;
        (next, self.finish(orders, now))
    }
}
