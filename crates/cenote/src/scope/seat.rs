//! The seat: where the pinned lease of one pool rests, and the queue of binds that wait for it.

use std::any::Any;
use std::collections::VecDeque;
use std::mem;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use super::bound::Bound;
use crate::lease::Lease;
use crate::manager::{LeaseEnd, Manager};
use crate::pool::Pool;
use crate::shell::kind::{Kind, Threads};
use crate::shell::pooled::Stay;
use crate::shell::shared::Shared;

pub(super) struct Seat<M: Manager + 'static> {
    /// Keeps the pool's address from being used again, but not the pool open.
    _pool: Weak<Shared<Threads<M>>>,
    state: Mutex<State<M>>,
}

struct State<M: Manager + 'static> {
    held: Held<M>,
    pins: usize,
    ended: bool,
    queue: VecDeque<(u64, Waker)>,
    tickets: u64,
    /// Where the lease was bound last.
    user: Option<&'static Location<'static>>,
}

/// The bound that is held says where the lease goes after this seat: to a seat of the scope around
/// this one, or to its pool. While the lease is out, the bound is empty.
enum Held<M: Manager + 'static> {
    Vacant,
    Resting(Bound<M>),
    Out(Bound<M>),
}

/// What a bind gets from a seat.
pub(super) enum Took<M: Manager + 'static> {
    /// The lease that rested there.
    Lease(Bound<M>),
    /// The seat itself, for a lease that is to be acquired.
    Seat,
    Nothing,
}

impl<M: Manager + 'static> Seat<M> {
    pub(super) fn new(pool: &Pool<M>) -> Self {
        Self {
            _pool: Threads::downgrade(&pool.shared),
            state: Mutex::new(State {
                held: Held::Vacant,
                pins: 0,
                ended: false,
                queue: VecDeque::new(),
                tickets: 0,
                user: None,
            }),
        }
    }

    pub(super) fn is_taken(&self) -> bool {
        !self.lock().is_vacant()
    }

    /// Where the lease that is out was bound.
    pub(super) fn user(&self) -> Option<&'static Location<'static>> {
        self.lock().user
    }

    /// Seats `bound`, as if it had been pinned here once.
    pub(super) fn adopt(&self, bound: Bound<M>) -> Result<(), Bound<M>> {
        let mut state = self.lock();
        if state.ended || !state.is_vacant() {
            return Err(bound);
        }
        state.held = Held::Resting(bound);
        state.pins = 1;
        Ok(())
    }

    /// Pins a lease that is in use. Returns false if another one has the seat.
    pub(super) fn pin(&self, seated: bool, site: &'static Location<'static>) -> bool {
        let may = seated || self.take_seat(site);
        if may {
            self.lock().pins += 1;
        }
        may
    }

    /// Gives the seat to a lease that is in use. Returns false if another one has it.
    pub(super) fn take_seat(&self, site: &'static Location<'static>) -> bool {
        let mut state = self.lock();
        let may = !state.ended && state.is_vacant();
        if may {
            state.held = Held::Out(Bound::nowhere());
            state.user = Some(site);
        }
        may
    }

    /// Takes one pin from the lease that is out.
    pub(super) fn unpin(&self) {
        let mut state = self.lock();
        state.pins = state.pins.saturating_sub(1);
    }

    /// Returns the lease that rests here, if no bind waits for it.
    #[track_caller]
    pub(super) fn peek(this: &Arc<Self>) -> Option<Bound<M>> {
        let mut state = this.lock();
        if !state.queue.is_empty() {
            return None;
        }
        state.user = Some(Location::caller());
        let lease = state.take()?;
        Some(Bound::seated(lease, Arc::clone(this)))
    }

    /// Returns what this ticket gets when it is its turn. A bind that `claims` takes a vacant seat
    /// for the lease that it is about to acquire.
    pub(super) fn poll_take(
        this: &Arc<Self>,
        ticket: &mut Option<u64>,
        site: &'static Location<'static>,
        claims: bool,
        context: &Context<'_>,
    ) -> Poll<Took<M>> {
        let mut state = this.lock();
        let first = state.queue.front().map(|(first, _)| *first);
        let is_next = first.is_none() || first == *ticket;
        let took = if state.ended || state.is_vacant() && !claims {
            Took::Nothing
        } else if state.is_vacant() && is_next {
            state.held = Held::Out(Bound::nowhere());
            Took::Seat
        } else if let Some(lease) = is_next.then(|| state.take()).flatten() {
            Took::Lease(Bound::seated(lease, Arc::clone(this)))
        } else {
            state.wait(ticket, context.waker());
            return Poll::Pending;
        };
        if !matches!(took, Took::Nothing) {
            state.user = Some(site);
        }
        state.leave(ticket.take());
        Poll::Ready(took)
    }

    /// A bind gives up. If it was its turn, the next one is woken.
    pub(super) fn leave(&self, ticket: u64) {
        let mut state = self.lock();
        state.leave(Some(ticket));
        let next = usize::from(!matches!(state.held, Held::Out(_)));
        let woken = state.wakers(next);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// The lease that was out comes back; `None` if its user has discarded it.
    pub(super) fn come_home(&self, lease: Option<Lease<M>>, stay: Stay) {
        let mut state = self.lock();
        let Held::Out(mut shell) = mem::replace(&mut state.held, Held::Vacant) else {
            unreachable!("bug: a lease that comes home was out");
        };
        shell.lease = lease;
        let mut gone = None;
        let stays = match stay {
            Stay::Must => true,
            Stay::IfPinned => state.pins > 0,
            Stay::Broken => false,
        };
        let woken = if shell.lease.is_none() || state.ended || !stays {
            state.pins = 0;
            gone = Some(shell);
            state.wakers(usize::MAX)
        } else {
            state.held = Held::Resting(shell);
            state.wakers(1)
        };
        drop(state);
        drop(gone);
        woken.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: Manager + 'static> State<M> {
    fn is_vacant(&self) -> bool {
        matches!(self.held, Held::Vacant)
    }

    fn take(&mut self) -> Option<Lease<M>> {
        match mem::replace(&mut self.held, Held::Vacant) {
            Held::Resting(mut shell) => {
                let lease = shell.lease.take();
                self.held = Held::Out(shell);
                lease
            }
            other => {
                self.held = other;
                None
            }
        }
    }

    fn wait(&mut self, ticket: &mut Option<u64>, waker: &Waker) {
        let number = *ticket.get_or_insert_with(|| {
            self.tickets += 1;
            self.tickets
        });
        match self.queue.iter_mut().find(|(of, _)| *of == number) {
            Some((_, known)) => known.clone_from(waker),
            None => self.queue.push_back((number, waker.clone())),
        }
    }

    fn leave(&mut self, ticket: Option<u64>) {
        self.queue.retain(|(of, _)| Some(*of) != ticket);
    }

    /// The wakers of the first binds in the queue.
    fn wakers(&self, most: usize) -> Vec<Waker> {
        let first = self.queue.iter().take(most);
        first.map(|(_, waker)| waker.clone()).collect()
    }
}

/// A seat for a pool of any kind.
pub(super) trait AnySeat: Send + Sync {
    fn end(&self, end: LeaseEnd);
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<M: Manager + 'static> AnySeat for Seat<M> {
    fn end(&self, end: LeaseEnd) {
        let mut state = self.lock();
        state.ended = true;
        let mut gone = None;
        match mem::replace(&mut state.held, Held::Vacant) {
            Held::Resting(bound) => gone = Some(bound),
            held => state.held = held,
        }
        let woken = state.wakers(usize::MAX);
        drop(state);
        if let Some(bound) = gone {
            Bound::end(bound, end);
        }
        woken.into_iter().for_each(Waker::wake);
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
