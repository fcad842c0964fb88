//! Orders: what the ledger wants done once its lock is released.

use std::task::Waker;

use super::Resource;
use super::answers::Grant;
use super::circle::Circle;
use super::mailbox::{Mail, MailboxRef};
use super::slot::SlotNo;
use crate::guarded::guarded_now;
use crate::moment::Moment;
use crate::status::Reason;

/// What must be done now, without the lock. Dropping it unread loses wake-ups.
#[derive(Debug)]
#[must_use = "somebody may have to be woken"]
pub(crate) struct Orders<R: Resource> {
    /// Delivered first: it is for the first of those who are woken.
    pub(super) mail: Option<Letter<R>>,
    first: Option<Waker>,
    /// Rare.
    more: Option<Box<More<R>>>,
    /// There is owed work: take it, or ask somebody to.
    pub(crate) owed: bool,
    /// The upkeep task sleeps for too long: wake it.
    pub(crate) ring: bool,
    /// Somebody must be woken to look again by then: set the alarm.
    pub(crate) alarm: Option<Moment>,
    /// There is something to be dropped outside the lock.
    pub(crate) waste: bool,
    /// A circle was closed: tell of it.
    pub(crate) circle: Option<Box<Circle>>,
}

/// What was granted, and to whom.
#[derive(Debug)]
pub(crate) struct Letter<R: Resource> {
    pub(crate) to: MailboxRef<R>,
    pub(crate) grant: Grant<R>,
}

impl<R: Resource> Letter<R> {
    #[inline]
    pub(crate) fn deliver(self, refused: impl FnOnce(Grant<R>)) {
        let delivery = self.to.put(self.grant);
        if let Some(grant) = delivery.refused {
            refused(grant);
        }
        if let Some(waker) = delivery.waker {
            wake(waker);
        }
    }
}

/// Others to be served, woken, or forgotten.
#[derive(Debug)]
struct More<R: Resource> {
    letters: Vec<Letter<R>>,
    wakers: Vec<Waker>,
    /// Of those who left the line. Dropping a waker may run foreign code, so it is not dropped under the lock.
    spent: Vec<Waker>,
    /// For one who is gone. The same holds for errors.
    forgotten: Option<Mail<R>>,
}

impl<R: Resource> Default for Orders<R> {
    #[inline]
    fn default() -> Self {
        Self {
            mail: None,
            first: None,
            more: None,
            owed: false,
            ring: false,
            alarm: None,
            waste: false,
            circle: None,
        }
    }
}

impl<R: Resource> Orders<R> {
    /// Is nobody to be served or woken yet?
    #[inline]
    pub(super) fn is_untouched(&self) -> bool {
        self.mail.is_none() && self.first.is_none() && self.more.is_none()
    }

    #[cold]
    pub(super) fn deliver_too(&mut self, letter: Letter<R>) {
        self.more().letters.push(letter);
    }

    /// Is there one letter to be delivered, and nothing else to be done but to wake whom it is for?
    #[inline]
    pub(crate) fn is_one_letter(&self) -> bool {
        self.mail.is_some() && self.more.is_none() && !self.has_more()
    }

    /// The first letter, for one who delivers it by hand, before anybody is woken.
    #[inline]
    pub(crate) fn letter(&mut self) -> Option<Letter<R>> {
        self.mail.take()
    }

    #[inline]
    pub(crate) fn wake(&mut self, waker: Waker) {
        if self.first.is_none() && self.more.is_none() {
            self.first = Some(waker);
        } else {
            self.more().wakers.push(waker);
        }
    }

    /// If there is somebody.
    #[inline]
    pub(crate) fn wake_soon(&mut self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            self.wake(waker);
        }
    }

    #[cold]
    fn more(&mut self) -> &mut More<R> {
        self.more.get_or_insert_with(|| {
            Box::new(More {
                letters: Vec::new(),
                wakers: Vec::new(),
                spent: Vec::new(),
                forgotten: None,
            })
        })
    }

    /// As many as that may have to be woken.
    pub(super) fn expect(&mut self, count: usize) {
        self.more().wakers.reserve(count);
    }

    /// Is there anybody who has to be woken?
    #[inline]
    pub(crate) fn wakes(&self) -> bool {
        self.first.is_some()
    }

    /// Dropped with the orders.
    #[inline]
    pub(crate) fn spend(&mut self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            self.more().spent.push(waker);
        }
    }

    /// Dropped with the orders.
    pub(super) fn forget(&mut self, mail: Option<Mail<R>>) {
        if mail.is_some() {
            self.more().forgotten = mail;
        }
    }

    /// Delivers what was granted, and wakes everybody who has to be woken. What nobody wants any more is `refused`.
    #[inline]
    pub(crate) fn call_all(&mut self, mut refused: impl FnMut(Grant<R>)) {
        if let Some(letter) = self.mail.take() {
            letter.deliver(&mut refused);
        }
        if let Some(waker) = self.first.take() {
            wake(waker);
        }
        if self.more.is_some() {
            self.call_more(&mut refused);
        }
    }

    /// Is there something to do besides?
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.owed || self.ring || self.waste || self.alarm.is_some() || self.circle.is_some()
    }

    #[cold]
    fn call_more(&mut self, refused: &mut dyn FnMut(Grant<R>)) {
        let Some(more) = self.more.take() else { return };
        let More {
            letters,
            wakers,
            spent,
            forgotten,
        } = *more;
        for letter in letters {
            letter.deliver(&mut *refused);
        }
        wakers.into_iter().for_each(wake);
        drop(spent);
        let _ = guarded_now(|| drop(forgotten));
    }
}

/// A waker is foreign code. If one panics, which the panic hook has told, the others are woken all the same.
#[inline]
fn wake(waker: Waker) {
    let _ = guarded_now(|| waker.wake());
}

/// Something asynchronous that the pool owes itself. Whoever has a runtime takes it and does it.
#[derive(Debug)]
pub(crate) enum Work<R> {
    /// Open a resource for this slot.
    Open { slot: SlotNo },
    /// Find out whether an idle resource may be lent.
    Vet {
        slot: SlotNo,
        id: u64,
        resource: R,
        check: bool,
        ask: bool,
    },
    /// Make a returned resource fit for the next user.
    Clean {
        slot: SlotNo,
        id: u64,
        resource: R,
        clean: bool,
        probe: bool,
    },
    /// Close a resource.
    Close {
        slot: SlotNo,
        id: u64,
        resource: R,
        reason: Reason,
    },
}
