//! A pool under the rule of a fleet, whatever it pools.

use std::sync::atomic::{AtomicBool, Ordering};

use cenote::registry::{self, AnyPool};
use cenote::{Manager, Pool};

use crate::step::Load;

/// A pool of any kind.
pub(crate) trait Governed: Send + Sync {
    /// Puts a cap in force. A pool cannot have the size zero, so it is suspended then. A pool that
    /// is held is suspended, too, but keeps its connections.
    fn cap(&self, max_size: u32, is_held: bool);
    fn load(&self) -> Load;
    fn invalidate(&self);
    /// Sets what the timeout errors of the pool say of the fleet.
    fn note(&self, text: Option<&str>);
    /// The pool was closed. It opens nothing any more.
    fn is_closed(&self) -> bool;
}

pub(crate) struct Reins<M: Manager + 'static> {
    pool: Pool<M>,
    /// The same pool without its annex, which is part of the overhead.
    own: AnyPool,
    /// The smallest size that the pool takes.
    least: u32,
    /// The pool was suspended here, and not by its user.
    suspended: AtomicBool,
    /// All connections were told to close.
    emptied: AtomicBool,
}

impl<M: Manager + 'static> Reins<M> {
    pub(crate) fn new(pool: &Pool<M>) -> Self {
        pool.wait_for_places();
        let mut pools = registry::pools().into_iter();
        let own = pools.find(|it| it.number() == pool.number());
        Self {
            pool: pool.clone(),
            own: own.expect("every living pool is in the registry"),
            least: least(pool),
            suspended: AtomicBool::new(false),
            emptied: AtomicBool::new(false),
        }
    }

    fn suspend(&self) {
        if !self.suspended.swap(true, Ordering::Relaxed) {
            self.pool.suspend();
        }
    }

    /// A connection that is out is closed when it comes back. One whose open was under way is
    /// closed by a later call.
    fn empty(&self) {
        let is_first = !self.emptied.swap(true, Ordering::Relaxed);
        if is_first || self.pool.status().idle > 0 {
            self.pool.invalidate();
        }
    }
}

/// Returns the smallest size that a pool takes.
pub(crate) fn least<M: Manager + 'static>(pool: &Pool<M>) -> u32 {
    let config = pool.config();
    small(config.min_size.max(config.min_idle).max(1))
}

/// Returns how many connections the annex of a pool may have. They are not part of its size.
pub(crate) fn annex_size<M: Manager + 'static>(pool: &Pool<M>) -> u32 {
    pool.annex()
        .map_or(0, |annex| small(annex.config().max_size))
}

impl<M: Manager + 'static> Governed for Reins<M> {
    fn cap(&self, max_size: u32, is_held: bool) {
        let is_enough = max_size >= self.least;
        let size = max_size.max(self.least) as usize;
        if !is_enough || is_held {
            self.suspend();
        }
        match is_enough {
            true => self.emptied.store(false, Ordering::Relaxed),
            false => self.empty(),
        }
        if self.pool.config().max_size != size {
            let resized = self.pool.resize(size);
            resized.expect("the size is not below the least");
        }
        if is_enough && !is_held && self.suspended.swap(false, Ordering::Relaxed) {
            self.pool.resume();
        }
    }

    fn load(&self) -> Load {
        let status = self.own.status().expect("the pool is held here");
        Load {
            // A place that is reserved may be opened without another question.
            open: small(status.total + status.closing + status.reserved),
            wants: small(status.in_use + status.reserved + status.waiting),
        }
    }

    fn invalidate(&self) {
        self.pool.invalidate();
    }

    fn note(&self, text: Option<&str>) {
        self.pool.set_note(text.map(Into::into));
    }

    fn is_closed(&self) -> bool {
        self.pool.is_closed()
    }
}

fn small(count: usize) -> u32 {
    count.try_into().unwrap_or(u32::MAX)
}
