//! The alarm's part of the ledger: when somebody must be woken to look again, and whose time is over.
//!
//! The alarm's thread is on another core than those who wait, and what it touches has to be sent there and back. So it wakes only the first
//! who is due, who passes it on.

use std::sync::Arc;
use std::time::Duration;

use super::seat::next_look;
use super::view::Seen;
use super::{Ledger, Orders, Report, Resource};
use crate::moment::Moment;

/// One who was woken and has not passed it on by then is kept from running: the alarm wakes the others itself.
const PASSED_ON_WITHIN: Duration = Duration::from_millis(5);

/// How far the alarm has come that went off last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relay {
    Done,
    /// One was woken, who has to wake the others.
    Begun,
    /// All were woken. The first of those whose time is over tells the others.
    Untold,
}

impl<R: Resource> Ledger<R> {
    /// Was the alarm ever set? One that was overtaken may still be.
    pub(crate) fn was_alarm_set(&self) -> bool {
        self.queue.joined() > 0
    }

    /// One whose time is over then must be woken. Answers with when the alarm must be set for, unless it is set for sooner.
    #[inline]
    pub(super) fn set_alarm(&mut self, until: Option<Moment>, now: Moment) -> Option<Moment> {
        let at = next_look(until, now)?;
        let is_sooner = self.alarm_at.is_none_or(|set| at < set);
        is_sooner.then(|| *self.alarm_at.insert(at))
    }

    /// The alarm that was set for `at` goes off: wakes the first who must look again. Answers with when it must go off next. One that was
    /// set before it for later means nothing any more.
    pub(crate) fn alarm(&mut self, at: Moment, now: Moment) -> (Option<Moment>, Orders<R>) {
        let mut orders = Orders::default();
        if self.alarm_at != Some(at) {
            return (None, orders);
        }
        // Whoever was woken last time may be kept from running.
        let by_itself = self.relay == Relay::Begun || self.queue.len() == 1;
        self.alarm_at = self.wake_due(!by_itself, None, now, &mut orders);
        (self.alarm_at, self.finish(orders, now))
    }

    /// One who waits is here. If the alarm woke them, they wake the others; those whose time is over as well are told what was `seen`.
    pub(super) fn wake_others(
        &mut self,
        seen: Option<Seen<R>>,
        now: Moment,
        orders: &mut Orders<R>,
    ) {
        let is_due = match self.relay {
            Relay::Done => false,
            Relay::Begun => true,
            Relay::Untold => seen.is_some(),
        };
        if is_due {
            orders.expect(self.queue.len());
            self.alarm_at = self.wake_due(false, seen, now, orders);
            orders.alarm = self.alarm_at;
        }
    }

    /// Answers with when the alarm must go off next.
    fn wake_due(
        &mut self,
        only_first: bool,
        mut seen: Option<Seen<R>>,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Option<Moment> {
        let (mut next_alarm, mut untold) = (None::<Moment>, false);
        let (mut next, mut ahead) = (self.queue.first_seat(), 0);
        while let Some(seat) = next {
            let waiter = self.queue.at_mut(seat);
            next = waiter.behind;
            let is_over = waiter.until <= now;
            match waiter.look_at {
                None => {}
                Some(at) if at > now => {
                    next_alarm = Some(next_alarm.map_or(at, |next| next.min(at)));
                }
                Some(_) => {
                    waiter.look_at = None;
                    orders.wake_soon(waiter.waker.take());
                    if only_first {
                        self.relay = Relay::Begun;
                        return Some(now + PASSED_ON_WITHIN);
                    }
                }
            }
            untold |= is_over && seen.is_none();
            if let Some(seen) = seen.as_mut().filter(|_| is_over) {
                let phase = self.phase(ahead, &seen.status);
                if phase != seen.phase {
                    // The ledger has the error, too: to drop a copy here runs no code of users.
                    *seen = Arc::new(Report {
                        phase,
                        ..Report::clone(seen)
                    });
                }
                self.queue.expire(seat, Arc::clone(seen));
                self.counts.timed_out += 1;
            }
            ahead += 1;
        }
        self.relay = match untold && self.queue.len() > 1 {
            true => Relay::Untold,
            false => Relay::Done,
        };
        next_alarm
    }
}
