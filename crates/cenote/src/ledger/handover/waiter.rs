//! A waiter of a program: the loop of an acquire's poll, and a bell that only the waker of its last poll can ring.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Wake, Waker};

use shuttle::future::block_on;

use super::super::{Mail, MailboxRef, Refusal, Ticket};
use super::order::{Step, about_to};
use super::world::{Token, World};
use crate::moment::Moment;

/// What a waiter does between its place in the queue and its outcome.
#[derive(Clone, Copy, Debug)]
pub(super) struct Script {
    /// It has a deadline.
    pub(super) hurries: bool,
    /// It is polled, although it was not woken.
    pub(super) polls: &'static [With],
    /// Its polls after a wake-up.
    pub(super) woken: With,
    /// It is dropped, and does not wait for its outcome.
    pub(super) leaves: bool,
    /// Its polls come when its deadline has passed.
    pub(super) late: bool,
    /// It joins while the others act.
    pub(super) newcomer: bool,
}

/// The waker of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum With {
    /// That of the poll before.
    Same,
    /// Another. The ones before wake nothing any more.
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
    Closed,
    Unavailable,
    OpenFailed,
    TimedOut,
    /// It was dropped.
    Left,
}

impl End {
    pub(super) fn of<F>(refusal: &Refusal<F>) -> Self {
        match refusal {
            Refusal::Closed => Self::Closed,
            Refusal::Unavailable(_) => Self::Unavailable,
            Refusal::Open(_) => Self::OpenFailed,
            Refusal::TimedOut(_) => Self::TimedOut,
            Refusal::Rejected { .. } | Refusal::Nested { .. } => {
                panic!("nothing here rejects a waiter")
            }
        }
    }
}

/// A waiter, as it is known to itself and to the world. None of the facts is held over a switch.
pub(super) struct Waiter {
    pub(super) deadline: Moment,
    bell: Arc<Bell>,
    facts: Mutex<Facts>,
}

struct Facts {
    /// Until the wait has ended, as in an acquire.
    place: Option<(Ticket, MailboxRef<Token>)>,
    /// Inside of a poll it needs no wake-up.
    is_polled: bool,
    waker: Waker,
    /// Refusals that were decided while it waited.
    due: Vec<End>,
    has_grant: bool,
    end: Option<End>,
}

impl Waiter {
    pub(super) fn new(deadline: Moment) -> Arc<Self> {
        let bell = Arc::new(Bell::default());
        Arc::new(Self {
            deadline,
            facts: Mutex::new(Facts {
                place: None,
                is_polled: true,
                waker: bell.waker(),
                due: Vec::new(),
                has_grant: false,
                end: None,
            }),
            bell,
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

    pub(super) fn is_rung(&self) -> bool {
        self.bell.inside().rung
    }

    /// Returns whether it had no grant before.
    pub(super) fn is_newly_granted(&self) -> bool {
        !std::mem::replace(&mut self.facts().has_grant, true)
    }

    /// This refusal was decided, under the ledger's lock.
    pub(super) fn may_hear(&self, refusal: End) {
        let mut facts = self.facts();
        if facts.end.is_none() && !facts.due.contains(&refusal) {
            facts.due.push(refusal);
        }
    }

    pub(super) fn end(&self) -> Option<End> {
        self.facts().end
    }

    /// Waits to the end.
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
            self.bell.wait();
            if let Some(mail) = self.poll(script.woken, world, now) {
                return self.settle(mail, world, now);
            }
        }
    }

    /// As `Waiting::poll`.
    fn poll(&self, with: With, world: &World, now: Moment) -> Option<Mail<Token>> {
        let waker = match with {
            With::Same => self.waker(),
            With::Fresh => self.bell.fresh(),
        };
        let (ticket, mailbox) = {
            let mut facts = self.facts();
            facts.is_polled = true;
            facts.waker = waker.clone();
            let place = facts.place.as_ref().expect("bug: a wait ends once");
            (place.0, Arc::clone(&place.1))
        };
        self.bell.inside().rung = false;
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
            Ok(grant) => {
                self.ended(End::Served);
                world.use_and_give_back(grant, now);
            }
            Err(refusal) => self.ended(End::of(&refusal)),
        }
    }

    /// The wait is over, and its place is forgotten.
    pub(super) fn ended(&self, end: End) {
        let mut facts = self.facts();
        let is_true = matches!(end, End::Served | End::Left) || facts.due.contains(&end);
        assert!(is_true, "{end:?}, and only {:?} was decided", facts.due);
        facts.end = Some(end);
        facts.place = None;
    }

    /// It is dropped.
    fn leave(&self, world: &World, now: Moment) {
        let place = self.facts().place.take();
        let (ticket, mailbox) = place.expect("bug: a wait ends once");
        world.enter(now, |ledger, orders| {
            *orders = ledger.withdraw(ticket, &mailbox, now);
        });
        self.ended(End::Left);
    }
}

/// Rung by the waker of the last poll. The ones before ring in vain.
#[derive(Default)]
struct Bell(Mutex<Inside>);

#[derive(Default)]
struct Inside {
    rung: bool,
    /// How many wakers there were before this one.
    wakers: usize,
    sleeper: Option<Waker>,
}

impl Bell {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::new(Rope {
            bell: Arc::clone(self),
            number: self.inside().wakers,
        }))
    }

    fn fresh(self: &Arc<Self>) -> Waker {
        self.inside().wakers += 1;
        self.waker()
    }

    /// A bell that is never rung is a deadlock, and shuttle says so.
    fn wait(&self) {
        block_on(poll_fn(|context| {
            let mut inside = self.inside();
            if inside.rung {
                return Poll::Ready(());
            }
            inside.sleeper = Some(context.waker().clone());
            Poll::Pending
        }));
    }
}

struct Rope {
    bell: Arc<Bell>,
    number: usize,
}

impl Wake for Rope {
    fn wake(self: Arc<Self>) {
        let mut inside = self.bell.inside();
        if inside.wakers == self.number {
            inside.rung = true;
            if let Some(sleeper) = inside.sleeper.take() {
                sleeper.wake();
            }
        }
    }
}
