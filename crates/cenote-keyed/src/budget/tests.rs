//! Random histories of the budget, with its invariants checked after each step.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::collections::VecDeque;

use fastrand::Rng;

use super::Budget;

const HISTORIES: u64 = 500;
const STEPS: usize = 300;

/// What the test knows beside the budget.
struct Model {
    budget: Budget<(), u64>,
    /// By share: the places that are held, and whether each was recalled.
    places: Vec<Vec<bool>>,
    /// By share: how many closes were ordered and have not come back.
    ordered: Vec<usize>,
    /// By share: the tickets, with the waiter of each.
    queued: Vec<VecDeque<(u64, u64)>>,
    total: usize,
    last_waiter: u64,
}

impl Model {
    fn new(shares: usize, total: usize) -> Self {
        let mut budget = Budget::new(total);
        for _ in 0..shares {
            let (number, _) = budget.add();
            budget.set_owner(number, ());
        }
        Self {
            budget,
            places: vec![Vec::new(); shares],
            ordered: vec![0; shares],
            queued: vec![VecDeque::new(); shares],
            total,
            last_waiter: 0,
        }
    }

    fn held(&self) -> usize {
        self.places.iter().map(Vec::len).sum()
    }

    /// Those that keep the fewest are first, and each of them gets one place at a time.
    fn granted(&mut self, granted: Vec<(usize, u64)>, kept_before: &[usize]) {
        let mut kept = kept_before.to_vec();
        for (share, waiter) in granted {
            let fewest = (0..kept.len())
                .filter(|other| !self.queued[*other].is_empty())
                .map(|other| (kept[other], self.queued[other][0].0))
                .min();
            let (ticket, first) = self.queued[share].pop_front().unwrap();
            assert_eq!(
                (Some((kept[share], ticket)), waiter),
                (fewest, first),
                "fairness"
            );
            self.places[share].push(false);
            kept[share] += 1;
        }
    }

    fn kept(&self) -> Vec<usize> {
        let shares = self.budget.shares.iter().flatten();
        shares.map(super::Share::kept).collect()
    }

    fn step(&mut self, rng: &mut Rng) {
        let share = rng.usize(..self.places.len());
        match rng.u8(..10) {
            0..3 => {
                let was_free = self.held() < self.total;
                assert_eq!(self.budget.take(share), was_free, "B2");
                if was_free {
                    self.places[share].push(false);
                } else {
                    self.last_waiter += 1;
                    let ticket = self.budget.queue(share, self.last_waiter);
                    self.queued[share].push_back((ticket, self.last_waiter));
                }
            }
            3 if !self.queued[share].is_empty() => {
                let nth = rng.usize(..self.queued[share].len());
                let (ticket, waiter) = self.queued[share].remove(nth).unwrap();
                assert_eq!(self.budget.withdraw(share, ticket), Some(waiter));
                assert_eq!(self.budget.withdraw(share, ticket), None);
            }
            4..6 if !self.places[share].is_empty() => {
                // A lease comes back: its place may be recalled.
                let nth = rng.usize(..self.places[share].len());
                if !self.places[share][nth] && self.unordered(share) > 0 {
                    let kept = self.kept();
                    let starves = self.starves(&kept);
                    let recalled = self.budget.recall(share);
                    self.places[share][nth] = recalled;
                    assert!(recalled || !starves || kept[share] == 0, "a key starves");
                }
            }
            6 if self.unordered(share) > 0 && self.budget.expect(share) => {
                if rng.bool() {
                    self.ordered[share] += 1;
                } else {
                    self.budget.expect_no_more(share);
                }
            }
            7 | 8 if !self.places[share].is_empty() => {
                let nth = rng.usize(..self.places[share].len());
                let was_recalled = self.places[share].swap_remove(nth);
                self.ordered[share] =
                    self.ordered[share].saturating_sub(usize::from(!was_recalled));
                let kept = self.kept_after_return(share, was_recalled);
                let granted = self.budget.give_back(share, was_recalled);
                self.granted(granted, &kept);
            }
            9 => {
                self.total = rng.usize(1..8);
                let kept = self.kept();
                let granted = self.budget.resize(self.total);
                self.granted(granted, &kept);
            }
            _ => {}
        }
        self.check();
    }

    /// How many places of a key have no order to leave.
    fn unordered(&self, share: usize) -> usize {
        let recalled = self.places[share]
            .iter()
            .filter(|recalled| **recalled)
            .count();
        self.places[share].len() - recalled - self.ordered[share]
    }

    fn kept_after_return(&self, share: usize, was_recalled: bool) -> Vec<usize> {
        let mut kept = self.kept();
        let entry = self.budget.shares[share].as_ref().unwrap();
        kept[share] -= usize::from(!was_recalled && entry.expected == 0);
        kept
    }

    /// Returns whether a key without a place waits, and no place is on its way for it.
    fn starves(&self, kept: &[usize]) -> bool {
        let poor = |share: &usize| kept[*share] == 0 && !self.queued[*share].is_empty();
        let count = (0..kept.len()).filter(poor).count();
        count > self.budget.leaving()
    }

    fn check(&self) {
        self.budget.assert_sound();
        assert_eq!(self.budget.held(), self.held(), "B1");
        let recalled = self
            .places
            .iter()
            .flatten()
            .filter(|recalled| **recalled)
            .count();
        let ordered: usize = self.ordered.iter().sum();
        assert!(self.budget.leaving() <= recalled + ordered, "B4");
        let tickets: usize = self.queued.iter().map(VecDeque::len).sum();
        assert_eq!(self.budget.tickets(), tickets, "a ticket was lost");
        assert!(tickets == 0 || self.held() >= self.total, "B3");
    }
}

#[test]
fn random_histories_keep_every_invariant() {
    let first = std::env::var("CENOTE_SEED").ok();
    let seeds = match first.and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..HISTORIES,
    };
    for seed in seeds {
        println!("CENOTE_SEED={seed}");
        let mut rng = Rng::with_seed(seed);
        let mut model = Model::new(rng.usize(1..6), rng.usize(1..8));
        for _ in 0..STEPS {
            model.step(&mut rng);
        }
    }
}

#[test]
fn an_order_that_comes_to_nothing_is_not_counted_on() {
    let mut budget: Budget<(), u8> = Budget::new(1);
    let ((first, _), (second, _)) = (budget.add(), budget.add());
    assert!(budget.take(first));
    budget.queue(second, 1);
    assert!(budget.expect(first));
    assert!(!budget.recall(first), "one place is enough");

    budget.expect_no_more(first);

    assert!(budget.recall(first));
    assert_eq!(budget.give_back(first, true), [(second, 1)]);
}

#[test]
fn a_share_that_was_removed_leaves_its_number_to_the_next() {
    let mut budget: Budget<u8, ()> = Budget::new(1);
    let (first, _) = budget.add();
    budget.set_owner(first, 7);

    assert_eq!(budget.remove(first), Some(7));
    let (second, _) = budget.add();

    assert_eq!((first, budget.owner(second)), (second, None));
}
