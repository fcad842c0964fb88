//! The desk: where an open gets its base, on a lease with room or on a new one.
//!
//! Opens that find no room share the next leases: only as many acquire as are needed, and the
//! others wait for them. A lease is on the list as long as resources are built on it.

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Poll, Waker};

use super::{On, Upper};
use crate::error::AcquireError;
use crate::lease::Lease;
use crate::ledger::Recall;
use crate::manager::{LeaseEnd, Manager};
use crate::rt::sync::{AtomicBool, AtomicUsize, Ordering, PoisonError};
use crate::shell::acquire::{Acquire, Patience};
use crate::shell::uppers::Kept;
use crate::shell::waiting::Waiting;
use crate::shell::watcher::Watcher;
use crate::time;

pub(super) struct Desk<B: Manager + 'static> {
    /// How many resources one lease may have, and how each gets its clone of the base.
    sharing: Option<Sharing<B>>,
    state: Mutex<State<B>>,
}

type Sharing<B> = (
    usize,
    fn(&<B as Manager>::Resource) -> <B as Manager>::Resource,
);

struct State<B: Manager + 'static> {
    leases: Vec<Weak<Part<B>>>,
    /// Opens that have no base yet, and how many of them acquire a lease.
    openers: usize,
    acquirers: usize,
    /// Wakers of opens, to be woken when there may be room.
    wakers: Vec<Waker>,
}

impl<B: Manager + 'static> Default for Desk<B> {
    fn default() -> Self {
        Self {
            sharing: None,
            state: Mutex::new(State {
                leases: Vec::new(),
                openers: 0,
                acquirers: 0,
                wakers: Vec::new(),
            }),
        }
    }
}

impl<B: Manager + 'static> Desk<B> {
    pub(super) fn shared_by(most: usize, clone: fn(&B::Resource) -> B::Resource) -> Self {
        Self {
            sharing: Some((most.max(1), clone)),
            ..Self::default()
        }
    }

    fn state(&self) -> MutexGuard<'_, State<B>> {
        lock(&self.state)
    }

    fn wait(&self, waker: &Waker) {
        if self.sharing.is_none() {
            return;
        }
        let waker = waker.clone();
        let mut state = self.state();
        if !state.wakers.iter().any(|known| known.will_wake(&waker)) {
            state.wakers.push(waker);
        }
    }

    fn wake_all(&self) {
        let wakers = mem::take(&mut self.state().wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The leases on which resources are built.
    fn parts(&self) -> Vec<Arc<Part<B>>> {
        let mut state = self.state();
        state.leases.retain(|lease| lease.strong_count() > 0);
        state.leases.iter().filter_map(Weak::upgrade).collect()
    }

    /// A resource on the lease that has the fewest, if one has room and is fit.
    fn share(self: &Arc<Self>, base: &B) -> Option<Lower<B>> {
        let (most, clone) = self.sharing?;
        let mut parts = self.parts();
        parts.retain(|part| {
            let handle = lock(&part.lease).as_deref().map(clone);
            // The pool can replace a broken one at once: its users have clones.
            let is_broken = handle.is_none_or(|mut it| base.is_broken(&mut it, LeaseEnd::Idle));
            if is_broken {
                part.is_spoilt.store(true, Ordering::Release);
                let lease = lock(&part.lease).take();
                drop(lease);
            }
            !is_broken && part.recalls() != Recall::Now
        });
        parts.sort_by_key(|part| part.users.load(Ordering::Relaxed));
        let part = parts.into_iter().find(|part| part.take_place(most))?;
        let handle = lock(&part.lease).as_deref().map(clone);
        Some(Lower::new(Held::Handle(handle?), part, self))
    }

    /// A resource on a new lease, which others may share.
    fn begin(self: &Arc<Self>, mut lease: Lease<B>) -> Lower<B> {
        let kept = Lease::keep(&mut lease);
        let handle = self.sharing.map(|(_, clone)| clone(&lease));
        let (held, lease) = match handle {
            Some(handle) => (Held::Handle(handle), Some(lease)),
            None => (Held::Own(lease), None),
        };
        let part = Arc::new(Part {
            lease: Mutex::new(lease),
            kept,
            is_spoilt: AtomicBool::new(false),
            users: AtomicUsize::new(1),
        });
        if self.sharing.is_some() {
            self.state().leases.push(Arc::downgrade(&part));
        }
        Lower::new(held, part, self)
    }
}

impl<U: Upper> On<U> {
    /// Gets the base for one open.
    pub(super) async fn lower(
        &self,
    ) -> Result<Lower<U::Base>, AcquireError<<U::Base as Manager>::Error>> {
        let shared = self.pool();
        let limits = shared.as_ref().map(|shared| &shared.limits);
        let own = limits.map(|limits| [limits.open_timeout, limits.acquire_timeout]);
        let own = own
            .into_iter()
            .flatten()
            .flatten()
            .map(|limit| limit / 10 * 9);
        let usual = self.base.shared.limits.acquire_timeout;
        let limit = own.chain(usual).min();
        let deadline = limit.and_then(|limit| time::now().checked_add(limit));
        let patience = deadline.map_or(Patience::For(None), Patience::Until);

        let mut watcher = shared.as_deref().map(Watcher::new);
        let mut opener = Opener::new(&self.desk);
        let mut acquiring = pin!(Waiting::new(&self.base.shared, self.site, patience));
        poll_fn(|context| {
            if let (Some(shared), Some(watcher)) = (&shared, &mut watcher) {
                watcher.watch(context);
                if shared.ledger().is_closed() {
                    let pool = Arc::clone(&shared.name);
                    return Poll::Ready(Err(AcquireError::Closed { pool }));
                }
            }
            self.desk.wait(context.waker());
            if let Some(lower) = self.desk.share(self.base.manager()) {
                return Poll::Ready(Ok(lower));
            }
            if !opener.may_acquire() {
                return Poll::Pending;
            }
            acquiring
                .as_mut()
                .poll(context)
                .map(|acquired: Acquire<_>| {
                    let lease = acquired?;
                    if let Some(shared) = &shared {
                        Lease::label(&lease, format!("pool `{}`", shared.name));
                    }
                    Ok(self.desk.begin(lease))
                })
        })
        .await
    }
}

/// An open that has no base yet.
struct Opener<'a, B: Manager + 'static> {
    desk: &'a Desk<B>,
    acquires: bool,
}

impl<'a, B: Manager + 'static> Opener<'a, B> {
    fn new(desk: &'a Desk<B>) -> Self {
        desk.state().openers += 1;
        Self {
            desk,
            acquires: false,
        }
    }

    /// Returns whether this open acquires a lease: so many do that all find room.
    fn may_acquire(&mut self) -> bool {
        let most = self.desk.sharing.map_or(1, |(most, _)| most);
        let mut state = self.desk.state();
        if !self.acquires && state.acquirers.saturating_mul(most) < state.openers {
            state.acquirers += 1;
            self.acquires = true;
        }
        self.acquires
    }
}

impl<B: Manager + 'static> Drop for Opener<'_, B> {
    fn drop(&mut self) {
        let mut state = self.desk.state();
        state.openers -= 1;
        state.acquirers -= usize::from(self.acquires);
        drop(state);
        // There is a new lease with room, or another open must acquire.
        self.desk.wake_all();
    }
}

/// A lease of the base pool. It goes back, or its resource is closed, with the last reference.
struct Part<B: Manager + 'static> {
    /// Elsewhere while its only user has it.
    lease: Mutex<Option<Lease<B>>>,
    kept: Kept<B>,
    is_spoilt: AtomicBool,
    users: AtomicUsize,
}

impl<B: Manager + 'static> Part<B> {
    fn take_place(&self, most: usize) -> bool {
        let one_more = |users| (users < most).then_some(users + 1);
        let users = &self.users;
        let taken = users.fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_more);
        taken.is_ok()
    }

    fn recalls(&self) -> Recall {
        match self.is_spoilt.load(Ordering::Acquire) {
            true => Recall::Now,
            false => self.kept.recalls(),
        }
    }
}

impl<B: Manager + 'static> Drop for Part<B> {
    fn drop(&mut self) {
        let lease = lock(&self.lease).take();
        if self.is_spoilt.load(Ordering::Acquire) {
            lease.into_iter().for_each(Lease::discard);
        }
    }
}

/// The base of one resource.
pub(super) struct Lower<B: Manager + 'static> {
    // In this order, and present until it is dropped.
    held: Option<Held<B>>,
    part: Option<Arc<Part<B>>>,
    desk: Arc<Desk<B>>,
    /// The resource above was closed properly. If not, the base may be spoilt.
    pub(super) is_sound: bool,
}

enum Held<B: Manager + 'static> {
    Own(Lease<B>),
    Handle(B::Resource),
}

impl<B: Manager + 'static> Lower<B> {
    fn new(held: Held<B>, part: Arc<Part<B>>, desk: &Arc<Desk<B>>) -> Self {
        Self {
            held: Some(held),
            part: Some(part),
            desk: Arc::clone(desk),
            is_sound: false,
        }
    }

    fn part(&self) -> &Arc<Part<B>> {
        self.part.as_ref().expect(HELD)
    }

    pub(super) fn base(&mut self) -> &mut B::Resource {
        match self.held.as_mut().expect(HELD) {
            Held::Own(lease) => lease,
            Held::Handle(handle) => handle,
        }
    }

    pub(super) fn recalls(&self) -> Recall {
        match self.part().recalls() {
            // Only the opens of this pool wait, which would not gain by it.
            Recall::WhenIdle { waiting } if waiting <= self.desk.state().acquirers => Recall::Not,
            recall => recall,
        }
    }

    /// Which lease it is.
    pub(super) fn number(&self) -> usize {
        Arc::as_ptr(self.part()).addr()
    }
}

const HELD: &str = "bug: a resource has its base until it is dropped";

impl<B: Manager + 'static> Drop for Lower<B> {
    fn drop(&mut self) {
        let Some(part) = self.part.take() else { return };
        match self.held.take() {
            Some(Held::Own(lease)) => *lock(&part.lease) = Some(lease),
            held => drop(held),
        }
        if !self.is_sound {
            part.is_spoilt.store(true, Ordering::Release);
        }
        part.users.fetch_sub(1, Ordering::AcqRel);
        drop(part);
        self.desk.wake_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
