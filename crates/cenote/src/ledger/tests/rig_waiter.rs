//! A waiter of the rig: its ticket, its mailbox, and how often it was woken.

use super::*;

/// Looks into a mailbox, and leaves everything there.
pub(super) fn peek<T>(
    mailbox: &MailboxRef<Token>,
    look: impl FnOnce(Option<&Mail<Token>>) -> T,
) -> T {
    let mail = mailbox.take();
    let seen = look(mail.as_ref());
    if let Some(mail) = mail {
        mailbox.deliver(mail);
    }
    seen
}

/// A caller that was queued.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) ticket: Ticket,
    pub(super) mailbox: MailboxRef<Token>,
    pub(super) woken: Arc<Woken>,
    /// When it began to wait.
    pub(super) since: Moment,
    /// The moment that the alarm was set for on its behalf.
    pub(super) alarm: Option<Moment>,
}

impl Waiter {
    pub(super) fn wakes(&self) -> usize {
        self.woken.count()
    }

    pub(super) fn has_mail(&self) -> bool {
        peek(&self.mailbox, |mail| mail.is_some())
    }

    /// Takes the grant out of the mailbox.
    #[track_caller]
    pub(super) fn claim(&self) -> Token {
        match self.mailbox.take() {
            Some(Mail::Grant(grant)) => grant,
            mail => panic!("a grant was to be there: {mail:?}"),
        }
    }

    /// Takes the error out of the mailbox.
    #[track_caller]
    pub(super) fn error(&self) -> AcquireError<&'static str> {
        match self.mailbox.take() {
            Some(Mail::TimedOut(phase, seen)) => {
                let since = self.since;
                AcquireError::TimedOut(TimedOut { since, phase, seen })
            }
            Some(Mail::Refusal(error)) => *error,
            mail => panic!("an error was to be there: {mail:?}"),
        }
    }

    #[track_caller]
    pub(super) fn timeout(&self) -> TimedOut<&'static str> {
        match self.error() {
            AcquireError::TimedOut(timed_out) => timed_out,
            error => panic!("it was to time out: {error:?}"),
        }
    }
}

/// Counts how often it was woken.
#[derive(Debug, Default)]
pub(super) struct Woken(AtomicUsize);

impl Woken {
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Returns whether this waker wakes it. `will_wake` may deny that where code is generated
    /// twice.
    pub(super) fn is_woken_by(self: &Arc<Self>, waker: &Waker) -> bool {
        waker.data() == Arc::as_ptr(self).cast()
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
