//! The annex: more resources of a pool, for callers that must not wait behind the others. It is a
//! pool of its own that is seen and controlled as a part of the first one.

use std::cmp::Reverse;

use crate::builder::Builder;
use crate::config::{Config, ConfigError};
use crate::manager::Manager;
use crate::pool::Pool;
use crate::status::{Health, Holder, Leftover, Status};

/// The annex that a builder makes.
pub(crate) struct Annex<M> {
    manager: M,
    name: &'static str,
    size: usize,
}

impl<M: Manager + 'static> Builder<M> {
    /// Adds a pool of up to `size` resources beside this one: [`Pool::annex`] returns it. It is
    /// for callers that must not wait behind the others, like the only writer of a database.
    ///
    /// The annex has the settings, hooks, observers and breaker of the pool, and its name with
    /// `name` added. `max_size`, `min_size` and `min_idle` do not count its resources. A look at
    /// the pool shows the annex too: [`status`](Pool::status) adds its numbers,
    /// [`leases`](Pool::leases) its leases, and [`health`](Pool::health) is the worse of both.
    /// [`close`](Pool::close), [`sever`](Pool::sever), [`suspend`](Pool::suspend),
    /// [`invalidate`](Pool::invalidate) and [`attach`](Pool::attach) reach both. In the
    /// [registry](crate::registry) each is listed by itself.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # struct Files;
    /// # impl cenote::Manager for Files {
    /// #     type Resource = ();
    /// #     type Error = String;
    /// #     async fn open(&self) -> Result<(), String> { Ok(()) }
    /// # }
    /// use cenote::Pool;
    ///
    /// let pool = Pool::builder(Files).name("files").max_size(4).annex("writer", Files, 1).build()?;
    /// let writer = pool.annex().unwrap();
    /// assert_eq!(writer.name(), "files (writer)");
    /// let _writing = writer.acquire().await?;
    /// let waiting = tokio::spawn({
    ///     let writer = writer.clone();
    ///     async move { writer.acquire().await.is_err() }
    /// });
    /// while pool.status().waiting == 0 {
    ///     tokio::task::yield_now().await;
    /// }
    /// assert_eq!((pool.status().max_size, pool.status().in_use), (4, 1));
    /// assert!(pool.acquire().await.is_ok(), "the others do not wait");
    ///
    /// pool.close();
    /// assert!(waiting.await?, "its waiters are told");
    /// # Ok(()) }
    /// ```
    pub fn annex(mut self, name: &'static str, manager: M, size: usize) -> Self {
        self.annex = Some(Annex {
            manager,
            name,
            size,
        });
        self
    }

    /// Builds the annex. The pool has its name by now.
    pub(crate) fn build_annex(&mut self) -> Result<Option<Pool<M>>, ConfigError> {
        let Some(annex) = self.annex.take() else {
            return Ok(None);
        };
        let name = self.config.name.as_deref().unwrap_or_default();
        let config = Config {
            name: Some(format!("{name} ({})", annex.name)),
            max_size: annex.size,
            min_size: 0,
            min_idle: 0,
            ..self.config.clone()
        };
        self.alike(annex.manager, config).build().map(Some)
    }
}

impl<M: Manager + 'static> Pool<M> {
    /// Returns the part of the pool that [`Builder::annex`] has added.
    pub fn annex(&self) -> Option<&Pool<M>> {
        self.shared.own.annex.as_ref()
    }

    /// Returns the pool and its annex.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Pool<M>> {
        [Some(self), self.annex()].into_iter().flatten()
    }

    /// Asks the pool and its annex, and returns the sum.
    pub(crate) fn sum<T>(&self, ask: impl Fn(&Self) -> T, add: impl Fn(T, T) -> T) -> T {
        let own = ask(self);
        match self.annex() {
            Some(annex) => add(own, ask(annex)),
            None => own,
        }
    }
}

impl Status {
    /// Adds the numbers of an annex. Its size does not count.
    pub(crate) fn and(self, annex: Self) -> Self {
        Self {
            max_size: self.max_size,
            idle: self.idle + annex.idle,
            in_use: self.in_use + annex.in_use,
            opening: self.opening + annex.opening,
            cleaning: self.cleaning + annex.cleaning,
            checking: self.checking + annex.checking,
            total: self.total + annex.total,
            closing: self.closing + annex.closing,
            reserved: self.reserved + annex.reserved,
            waiting: self.waiting + annex.waiting,
            oldest_wait: self.oldest_wait.max(annex.oldest_wait),
            acquired: self.acquired + annex.acquired,
            waited: self.waited + annex.waited,
            wait_time: self.wait_time + annex.wait_time,
            released: self.released + annex.released,
            held_time: self.held_time + annex.held_time,
            discarded: self.discarded + annex.discarded,
            detached: self.detached + annex.detached,
            opened: self.opened + annex.opened,
            open_failed: self.open_failed + annex.open_failed,
            timed_out: self.timed_out + annex.timed_out,
            cancelled: self.cancelled + annex.cancelled,
            leaked: self.leaked + annex.leaked,
            closes: self.closes.and(&annex.closes),
            close_failed: self.close_failed + annex.close_failed,
            refusals: self.refusals.and(&annex.refusals),
        }
    }
}

impl Health {
    /// Returns the worse of the two. An annex that was never used has no say.
    pub(crate) fn and(self, annex: Self) -> Self {
        let rank = |health| match health {
            Self::Unproven => 0,
            Self::Healthy => 1,
            Self::Busy => 2,
            Self::Stuck { .. } => 3,
            Self::Down { .. } => 4,
            Self::Closed => 5,
        };
        match rank(annex) > rank(self) {
            true => annex,
            false => self,
        }
    }
}

impl Leftover {
    /// Adds what is left of an annex.
    pub(crate) fn and(mut self, annex: Self) -> Self {
        self.leases = both(self.leases, annex.leases);
        self.unfinished += annex.unfinished;
        self.close_failed += annex.close_failed;
        self
    }
}

/// Returns the leases of both, the longest first.
pub(crate) fn both(mut leases: Vec<Holder>, annex: Vec<Holder>) -> Vec<Holder> {
    leases.extend(annex);
    leases.sort_by_key(|holder| Reverse(holder.held_for));
    leases
}
