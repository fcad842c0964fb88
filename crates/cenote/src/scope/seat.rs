//! The seat: where the pinned lease of one pool rests, and the line of those who wait for it.

use std::any::Any;
use std::collections::VecDeque;
use std::mem;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use super::bound::Bound;
use crate::lease::Lease;
use crate::manager::Manager;
use crate::pool::Pool;
use crate::shared::Shared;

pub(super) struct Seat<M: Manager + 'static> {
    /// Weak: a scope keeps no pool open. But it keeps its address.
    _pool: Weak<Shared<M>>,
    state: Mutex<State<M>>,
}

struct State<M: Manager + 'static> {
    held: Held<M>,
    pins: usize,
    ended: bool,
    line: VecDeque<(u64, Waker)>,
    tickets: u64,
    /// Where the lease was bound last.
    user: Option<&'static Location<'static>>,
}

/// Beside the lease stands where it goes from here: to a seat of the scope around this one, or to its pool.
enum Held<M: Manager + 'static> {
    Vacant,
    Resting(Bound<M>),
    Out(Bound<M>),
}

impl<M: Manager + 'static> Seat<M> {
    pub(super) fn new(pool: &Pool<M>) -> Self {
        Self {
            _pool: Arc::downgrade(&pool.shared),
            state: Mutex::new(State {
                held: Held::Vacant,
                pins: 0,
                ended: false,
                line: VecDeque::new(),
                tickets: 0,
                user: None,
            }),
        }
    }

    pub(super) fn is_taken(&self) -> bool {
        !matches!(self.lock().held, Held::Vacant)
    }

    /// Where the lease that is out was bound.
    pub(super) fn user(&self) -> Option<&'static Location<'static>> {
        self.lock().user
    }

    /// Seats `bound`, as if it had been pinned here once.
    pub(super) fn adopt(&self, bound: Bound<M>) -> Result<(), Bound<M>> {
        let mut state = self.lock();
        if state.ended || !matches!(state.held, Held::Vacant) {
            return Err(bound);
        }
        state.held = Held::Resting(bound);
        state.pins = 1;
        Ok(())
    }

    /// A lease that is in use pins itself. False if another one has the seat.
    pub(super) fn pin(&self, seated: bool, site: &'static Location<'static>) -> bool {
        let mut state = self.lock();
        let may = seated || !state.ended && matches!(state.held, Held::Vacant);
        if may {
            state.pins += 1;
        }
        if may && !seated {
            state.held = Held::Out(Bound::nowhere());
            state.user = Some(site);
        }
        may
    }

    /// The lease that is out is unpinned once.
    pub(super) fn unpin(&self) {
        let mut state = self.lock();
        state.pins = state.pins.saturating_sub(1);
    }

    /// What rests here, if anything does and nobody waits for it.
    #[track_caller]
    pub(super) fn peek(this: &Arc<Self>) -> Option<Bound<M>> {
        let mut state = this.lock();
        if !state.line.is_empty() {
            return None;
        }
        state.user = Some(Location::caller());
        state
            .take()
            .map(|lease| Bound::seated(lease, Arc::clone(this)))
    }

    /// The pinned lease once it is this one's turn, or `None` if there is none.
    pub(super) fn poll_take(
        this: &Arc<Self>,
        ticket: &mut Option<u64>,
        site: &'static Location<'static>,
        context: &Context<'_>,
    ) -> Poll<Option<Bound<M>>> {
        let mut state = this.lock();
        if state.ended || matches!(state.held, Held::Vacant) {
            state.leave(ticket.take());
            return Poll::Ready(None);
        }
        let first = state.line.front().map(|(first, _)| *first);
        if first.is_none() || first == *ticket {
            if let Some(lease) = state.take() {
                state.leave(ticket.take());
                state.user = Some(site);
                return Poll::Ready(Some(Bound::seated(lease, Arc::clone(this))));
            }
        }
        state.wait(ticket, context.waker());
        Poll::Pending
    }

    /// One in line gives up. If it was its turn, it is the next one's.
    pub(super) fn leave(&self, ticket: u64) {
        let next = {
            let mut state = self.lock();
            state.leave(Some(ticket));
            match &state.held {
                Held::Resting(_) => state.first(),
                Held::Vacant | Held::Out(_) => Vec::new(),
            }
        };
        next.into_iter().for_each(Waker::wake);
    }

    /// What was out comes home, unless its user threw it away.
    pub(super) fn come_home(&self, lease: Option<Lease<M>>) {
        let (gone, woken) = {
            let mut state = self.lock();
            let Held::Out(mut shell) = mem::replace(&mut state.held, Held::Vacant) else {
                unreachable!("bug: what comes home was out");
            };
            shell.lease = lease;
            if shell.lease.is_none() || state.ended || state.pins == 0 {
                state.pins = 0;
                (Some(shell), state.everyone())
            } else {
                state.held = Held::Resting(shell);
                (None, state.first())
            }
        };
        drop(gone);
        woken.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: Manager + 'static> State<M> {
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
        match self.line.iter_mut().find(|(of, _)| *of == number) {
            Some((_, known)) => known.clone_from(waker),
            None => self.line.push_back((number, waker.clone())),
        }
    }

    fn leave(&mut self, ticket: Option<u64>) {
        self.line.retain(|(of, _)| Some(*of) != ticket);
    }

    fn first(&self) -> Vec<Waker> {
        let first = self.line.front().map(|(_, waker)| waker.clone());
        first.into_iter().collect()
    }

    fn everyone(&self) -> Vec<Waker> {
        self.line.iter().map(|(_, waker)| waker.clone()).collect()
    }
}

/// A seat of whatever kind of pool.
pub(super) trait AnySeat: Send + Sync {
    fn end(&self);
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<M: Manager + 'static> AnySeat for Seat<M> {
    fn end(&self) {
        let (gone, woken) = {
            let mut state = self.lock();
            state.ended = true;
            let gone = match mem::replace(&mut state.held, Held::Vacant) {
                out @ Held::Out(_) => {
                    state.held = out;
                    None
                }
                held => Some(held),
            };
            (gone, state.everyone())
        };
        drop(gone);
        woken.into_iter().for_each(Waker::wake);
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
