//! A waiter of a program: the loop of an acquire's poll, and a signal that only the waker of its
//! last poll can set.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Wake, Waker};

use shuttle::future::block_on;

use super::super::{Mail, MailboxRef, Ticket};
use super::schedule::{Step, about_to};
use super::world::{Token, World};
use crate::error::AcquireError;
use crate::time::Moment;

/// The behaviour of a waiter between its request and its outcome.
#[derive(Clone, Copy, Debug)]
pub(super) struct Script {
    /// It has a deadline.
    pub(super) hurries: bool,
    /// The wakers of its polls before any wake-up.
    pub(super) polls: &'static [With],
    /// The waker of its polls after a wake-up.
    pub(super) woken: With,
    /// It is dropped, and does not wait for its outcome.
    pub(super) leaves: bool,
    /// Its polls come after its deadline.
    pub(super) late: bool,
    /// It asks while the other threads act, and not before.
    pub(super) newcomer: bool,
    /// It wants a place only.
    pub(super) reserves: bool,
}

/// The waker of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum With {
    /// The waker of the poll before.
    Same,
    /// Another waker. Those of earlier polls wake nothing any more.
    Fresh,
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { polls, woken, .. } = self;
        let words = [
            (self.newcomer, "newcomer"),
            (self.hurries, "hurried"),
            (self.late, "late"),
            (self.leaves, "leaving"),
        ];
        for (is_true, word) in words {
            if is_true {
                write!(f, "{word} ")?;
            }
        }
        write!(f, "waiter {polls:?} {woken:?}")
    }
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Served,
    /// It got a place, and gave it up.
    Placed,
    Closed,
    Unavailable,
    OpenFailed,
    TimedOut,
    /// It was dropped.
    Left,
}

impl End {
    pub(super) fn of<E>(error: &AcquireError<E>) -> Self {
        match error {
            AcquireError::Closed { .. } => Self::Closed,
            AcquireError::Unavailable(_) => Self::Unavailable,
            AcquireError::Open { .. } => Self::OpenFailed,
            AcquireError::TimedOut(_) => Self::TimedOut,
            AcquireError::Rejected { .. }
            | AcquireError::Nested { .. }
            | AcquireError::BlockingInRuntime { .. }
            | AcquireError::NoLocalSet { .. } => panic!("no program leads to this error"),
        }
    }
}

/// A waiter, as its thread and the world know it. The lock of the facts is never held over a switch
/// to another thread.
pub(super) struct Waiter {
    pub(super) deadline: Moment,
    signal: Arc<Signal>,
    facts: Mutex<Facts>,
}

struct Facts {
    /// Present until the wait has ended, as in an acquire.
    place: Option<(Ticket, MailboxRef<Token>)>,
    /// During a poll it needs no wake-up.
    is_polled: bool,
    waker: Waker,
    /// The errors that were decided while it waited.
    due: Vec<End>,
    has_grant: bool,
    end: Option<End>,
}

impl Waiter {
    pub(super) fn new(deadline: Moment) -> Arc<Self> {
        let signal = Arc::new(Signal::default());
        Arc::new(Self {
            deadline,
            facts: Mutex::new(Facts {
                place: None,
                is_polled: true,
                waker: signal.waker(),
                due: Vec::new(),
                has_grant: false,
                end: None,
            }),
            signal,
        })
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn waker(&self) -> Waker {
        self.facts().waker.clone()
    }

    /// It is queued, and its poll is over.
    pub(super) fn queued(&self, ticket: Ticket, mailbox: MailboxRef<Token>) {
        let mut facts = self.facts();
        facts.place = Some((ticket, mailbox));
        facts.is_polled = false;
    }

    /// Its ticket and its mailbox, between two polls.
    pub(super) fn place(&self) -> Option<(Ticket, MailboxRef<Token>)> {
        let facts = self.facts();
        let place = facts.place.as_ref().filter(|_| !facts.is_polled)?;
        Some((place.0, Arc::clone(&place.1)))
    }

    pub(super) fn is_woken(&self) -> bool {
        self.signal.state().is_set
    }

    /// Returns whether it had no grant before.
    pub(super) fn is_newly_granted(&self) -> bool {
        !std::mem::replace(&mut self.facts().has_grant, true)
    }

    /// The wait may end like this from now on. Under the ledger's lock.
    pub(super) fn may_end(&self, end: End) {
        let mut facts = self.facts();
        if facts.end.is_none() && !facts.due.contains(&end) {
            facts.due.push(end);
        }
    }

    pub(super) fn end(&self) -> Option<End> {
        self.facts().end
    }

    /// Follows the script until the wait has ended.
    pub(super) fn run(&self, world: &World, script: &Script) {
        let now = if script.late {
            world.late()
        } else {
            world.early()
        };
        for with in script.polls {
            if let Some(mail) = self.poll(*with, world, now) {
                return self.settle(mail, world, now);
            }
        }
        if script.leaves {
            return self.leave(world, now);
        }
        loop {
            self.signal.wait();
            if let Some(mail) = self.poll(script.woken, world, now) {
                return self.settle(mail, world, now);
            }
        }
    }

    /// Does as the shell's `Waiting::poll`.
    fn poll(&self, with: With, world: &World, now: Moment) -> Option<Mail<Token>> {
        let waker = match with {
            With::Same => self.waker(),
            With::Fresh => self.signal.fresh_waker(),
        };
        let (ticket, mailbox) = {
            let mut facts = self.facts();
            facts.is_polled = true;
            facts.waker = waker.clone();
            let place = facts.place.as_ref().expect("bug: a wait ends once");
            (place.0, Arc::clone(&place.1))
        };
        self.signal.state().is_set = false;
        for _ in 0..2 {
            about_to(Step::Look);
            let mail = mailbox.take();
            about_to(Step::Sleep);
            if mail.is_some() {
                return mail;
            }
            let waits = world.enter(now, |ledger, orders| {
                let waits = ledger.look(ticket, waker.clone(), now, orders);
                self.facts().is_polled = !waits;
                waits
            });
            if waits {
                return None;
            }
        }
        panic!("out of the queue, and without an outcome");
    }

    fn settle(&self, mail: Mail<Token>, world: &World, now: Moment) {
        match mail {
            Mail::Grant(grant) => {
                self.ended(End::Served);
                world.use_and_give_back(grant, now);
            }
            Mail::Place => {
                self.ended(End::Placed);
                world.enter(now, |ledger, orders| ledger.unreserve(now, orders));
            }
            Mail::TimedOut(..) => self.ended(End::TimedOut),
            Mail::Refusal(error) => self.ended(End::of(&error)),
        }
    }

    pub(super) fn ended(&self, end: End) {
        let mut facts = self.facts();
        let is_due =
            matches!(end, End::Served | End::Placed | End::Left) || facts.due.contains(&end);
        assert!(is_due, "{end:?}, and only {:?} was decided", facts.due);
        facts.end = Some(end);
        facts.place = None;
    }

    /// The waiter is dropped.
    fn leave(&self, world: &World, now: Moment) {
        let place = self.facts().place.take();
        let (ticket, mailbox) = place.expect("bug: a wait ends once");
        world.enter(now, |ledger, orders| {
            ledger.withdraw(ticket, &mailbox, now, orders);
        });
        self.ended(End::Left);
    }
}

/// Set by the waker of the last poll. The wakers of earlier polls do nothing.
#[derive(Default)]
struct Signal(Mutex<SignalState>);

#[derive(Default)]
struct SignalState {
    is_set: bool,
    /// How many wakers there were before the last one.
    wakers: usize,
    sleeper: Option<Waker>,
}

impl Signal {
    fn state(&self) -> MutexGuard<'_, SignalState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::new(SignalWaker {
            signal: Arc::clone(self),
            number: self.state().wakers,
        }))
    }

    fn fresh_waker(self: &Arc<Self>) -> Waker {
        self.state().wakers += 1;
        self.waker()
    }

    /// Sleeps until the signal is set. If that never happens, shuttle reports a deadlock.
    fn wait(&self) {
        block_on(poll_fn(|context| {
            let mut state = self.state();
            if state.is_set {
                return Poll::Ready(());
            }
            state.sleeper = Some(context.waker().clone());
            Poll::Pending
        }));
    }
}

struct SignalWaker {
    signal: Arc<Signal>,
    number: usize,
}

impl Wake for SignalWaker {
    fn wake(self: Arc<Self>) {
        let mut state = self.signal.state();
        if state.wakers == self.number {
            state.is_set = true;
            if let Some(sleeper) = state.sleeper.take() {
                sleeper.wake();
            }
        }
    }
}
