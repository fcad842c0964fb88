//! The checks after every step of a random history: the ledger's account agrees with that of its
//! callers.

use super::history::World;
use super::*;

impl World {
    pub(super) fn check(&mut self) {
        self.ledger.assert_sound(self.now);
        let status = self.ledger.status(self.now);
        self.check_size(&status);
        self.check_queue(&status);
        self.check_wakers();
        self.check_resources(&status);
        self.check_counts(status);
    }

    fn check_size(&mut self, status: &Status) {
        let occupied = status.total + status.closing;
        self.cap = self.cap.min(occupied).max(status.max_size);
        assert!(
            occupied <= self.cap,
            "I1: {occupied} exist, of {}",
            self.cap
        );
        let unread = self.callers.iter().filter(|caller| caller.has_place());
        assert_eq!(
            status.reserved,
            self.permits + unread.count(),
            "a place is lost"
        );
        let promised = status.in_use + status.reserved;
        self.promised = self.promised.min(promised).max(status.max_size);
        assert!(
            promised <= self.promised,
            "{promised} lent or reserved, of {}",
            self.promised
        );
        // An open that was held up and is tried again counts once more.
        if self.ledger.limits.on_open_error == OnOpenError::Fail {
            let opening = self.ledger.opening(self.now);
            let most = self.ledger.limits.max_opening;
            assert!(opening <= most, "{opening} opens at once, of {most}");
        }
        // An alarm that was forgotten lies in the past.
        if let Some(at) = self.ledger.alarm_at.filter(|at| *at > Moment::PAST) {
            assert!(
                self.alarms.contains(&at),
                "the orders did not set the alarm"
            );
        }
    }

    /// I3 and I7: a waiter is in the queue, in its order, or it has mail.
    fn check_queue(&mut self, status: &Status) {
        let mut ranks = Vec::new();
        let mut last_granted = None;
        let mut first_waiting = None;
        for caller in &self.callers {
            let waiter = self.ledger.waiters.waiter(caller.ticket);
            let (is_queued, has_mail) = (waiter.is_some(), caller.has_mail());
            assert_ne!(is_queued, has_mail, "I7: in the queue, or with mail");
            if let Some(waiter) = waiter {
                let Begun {
                    since, deadline, ..
                } = caller.begun;
                assert_eq!((waiter.since, waiter.deadline), (since, deadline));
                ranks.push(waiter.rank);
                if !caller.begun.again {
                    first_waiting.get_or_insert(caller.joined);
                }
            } else if caller.has_grant() {
                last_granted = Some(caller.joined);
            }
        }
        assert!(ranks.is_sorted(), "I3: the queue is in another order");
        assert_eq!(status.waiting, ranks.len(), "I3: a waiter is no caller");
        if let (Some(granted), Some(waiting)) = (last_granted, first_waiting) {
            assert!(granted < waiting, "I3: a waiter was passed over");
        }
    }

    /// The next event wakes the waker of the last poll, unless that waker was woken already. No
    /// waker is woken twice.
    fn check_wakers(&mut self) {
        for caller in &self.callers {
            let waiter = self.ledger.waiters.waiter(caller.ticket);
            let queued = waiter.and_then(|waiter| waiter.waker.as_ref());
            let is_last = queued.map(|queued| caller.woken.is_woken_by(queued));
            let wakes = caller.woken.count();
            assert_ne!(is_last, Some(false), "the waker of an earlier poll");
            assert_eq!(wakes, usize::from(is_last.is_none()), "a wake-up was lost");
        }
        for (number, woken) in self.watchers.iter().filter(|(number, _)| number.is_some()) {
            let kept = Arc::strong_count(woken) - 1;
            assert_eq!(kept + woken.count(), 1, "watcher {number:?} has one waker");
        }
    }

    /// I4.
    fn check_resources(&self, status: &Status) {
        let slots = &self.ledger.slots;
        let unclaimed = slots.iter().filter(|slot| slot.is_unclaimed());
        let unclaimed: Vec<_> = unclaimed.collect();
        for slot in &unclaimed {
            assert!(slot.since < slot.deadline, "granted after its deadline");
        }
        let granted = self.callers.iter().filter(|caller| caller.has_grant());
        assert_eq!(unclaimed.len(), granted.count(), "I7: granted to no waiter");
        assert_eq!(
            status.in_use,
            self.leases.len() + self.lying() + unclaimed.len(),
            "I4: leased is not lent plus granted"
        );
        let holders = self.ledger.holders(self.now);
        let claimed = holders.iter().filter(|holder| holder.claimed);
        let on_trays = self.ledger.count(State::OnTray);
        assert_eq!(
            (claimed.count() + on_trays, holders.len() + on_trays),
            (status.in_use - unclaimed.len(), status.in_use),
            "a lease has no holder"
        );
        let here = slots.iter().filter(|slot| slot.resource.is_some()).count();
        let owed = self.ledger.owed.iter();
        let owed = owed.filter(|work| !matches!(work.job, Job::Open));
        assert_eq!(
            self.inside.len(),
            here + owed.count() + unclaimed.len(),
            "I4: a resource was lost or doubled"
        );
    }

    fn check_counts(&mut self, status: Status) {
        let (s, b) = (&status, &self.before);
        let grew = [
            (b.acquired, s.acquired),
            (b.waited, s.waited),
            (b.released, s.released),
            (b.opened, s.opened),
            (b.open_failed, s.open_failed),
            (b.timed_out, s.timed_out),
            (b.cancelled, s.cancelled),
            (b.leaked, s.leaked),
            (b.closes.total(), s.closes.total()),
        ];
        assert!(
            grew.iter().all(|(before, now)| before <= now) && b.wait_time <= s.wait_time,
            "a counter went backwards"
        );
        let alive = (s.total - s.opening) as u64;
        assert_eq!(
            s.opened,
            s.closes.total() + s.detached + alive,
            "not every resource that was opened is closed, detached or alive"
        );
        let unread = self.callers.iter().filter(|caller| caller.has_timeout());
        assert_eq!(
            (s.waited, s.timed_out, s.cancelled),
            (
                self.ends.waits,
                self.ends.timed_out + unread.count() as u64,
                self.ends.cancelled
            ),
            "waits that began, timed out or were cancelled"
        );
        self.before = status;
    }
}
