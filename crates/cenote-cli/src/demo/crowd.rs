//! The customers: tasks that work while they are let in.

use cenote::Pool;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::load::{self, Tally};
use super::shop::Shop;
use super::wired::Wired;
use crate::failure::Failure;

#[derive(Debug)]
pub(super) struct Crowd {
    /// How many tasks may work.
    let_in: watch::Sender<u32>,
    tasks: JoinSet<Result<Tally, Failure>>,
    /// Discards connections now and then.
    _side: JoinSet<()>,
}

impl Crowd {
    /// Makes the tasks. None of them works yet.
    pub(super) fn gather<S: Shop>(pool: &Pool<Wired<S>>, count: u32) -> Self {
        let (let_in, allowed) = watch::channel(0);
        let mut tasks = JoinSet::new();
        for number in 0..count {
            tasks.spawn(load::work(pool.clone(), number, allowed.clone()));
        }
        let mut side = JoinSet::new();
        side.spawn(load::discard(pool.clone(), allowed));
        Self {
            let_in,
            tasks,
            _side: side,
        }
    }

    /// Lets so many tasks work. The others pause after what they do now.
    pub(super) fn let_in(&self, count: u32) {
        self.let_in.send_replace(count);
    }

    /// Waits for all tasks, which end when the pool is closed, and adds up their counts.
    pub(super) async fn leave(mut self) -> Result<Tally, Failure> {
        self.let_in.send_replace(u32::MAX);
        let mut total = Tally::new()?;
        while let Some(tally) = self.tasks.join_next().await {
            total.add(&tally??)?;
        }
        Ok(total)
    }
}
