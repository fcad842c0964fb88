//! The check of the budget's invariants, for tests and models.

use std::collections::BTreeSet;

use super::{Budget, Share};

impl<T, W> Budget<T, W> {
    /// Panics if an invariant does not hold.
    pub(crate) fn assert_sound(&self) {
        let shares = || self.shares.iter().flatten();
        let kept: usize = shares().map(Share::kept).sum();
        let leaving: usize = shares().map(|share| share.recalled + share.expected).sum();
        assert_eq!(leaving, self.leaving, "B1");
        assert_eq!(kept + leaving, self.held, "B1");
        let tickets: usize = shares().map(|share| share.queue.len()).sum();
        assert_eq!(tickets, self.tickets, "tickets");
        assert!(tickets == 0 || self.held >= self.total, "B3");
        let ranks = self.shares.iter().enumerate();
        let ranks = ranks.filter_map(|(number, share)| share.as_ref()?.rank(number));
        assert_eq!(ranks.collect::<BTreeSet<_>>(), self.waiting, "the line");
        let ages = self.shares.iter().enumerate();
        let ages = ages.filter_map(|(number, share)| share.as_ref()?.age(number));
        assert_eq!(ages.collect::<BTreeSet<_>>(), self.keepers, "the keepers");
    }
}
