//! The rules of shares, for random members and by example.

use fastrand::Rng;

use super::*;

fn ask(floor: u32, wants: u32, has: u32, weight: u32) -> Ask {
    Ask {
        base: 0,
        floor,
        wants,
        has,
        weight,
    }
}

fn any_asks(rng: &mut Rng) -> (u32, Vec<Ask>) {
    let asks = (0..rng.usize(1..8))
        .map(|_| {
            let weight = [1, 1, 1, 2, 3, 7][rng.usize(..6)];
            let ask = ask(rng.u32(..4), rng.u32(..20), rng.u32(..15), weight);
            let base = rng.u32(..=ask.floor);
            Ask { base, ..ask }
        })
        .collect();
    (rng.u32(..40), asks)
}

/// Checks S1 to S5.
fn assert_sound(capacity: u32, asks: &[Ask], shares: &[u32]) {
    let told = format!("{capacity} over {asks:?}: {shares:?}");
    let sum: u32 = shares.iter().sum();
    assert!(sum <= capacity, "S1: {told}");
    let laid: u32 = floors_laid(asks, shares);
    for (ask, &share) in asks.iter().zip(shares) {
        assert!(share <= ask.floor.max(ask.wants).max(ask.has), "S2: {told}");
        if share < ask.floor {
            assert!(
                capacity - laid < ask.floor - ask.base.min(share) && share <= ask.has.max(ask.base),
                "S3: {told}"
            );
        } else if share < ask.wants {
            assert_eq!(sum, capacity, "S5: {told}");
            assert_none_has_more((ask, share), asks, shares, &told);
        }
    }
}

fn floors_laid(asks: &[Ask], shares: &[u32]) -> u32 {
    let laid = asks.iter().zip(shares);
    laid.map(|(ask, &share)| match share >= ask.floor {
        true => ask.floor,
        false => ask.base.min(share),
    })
    .sum()
}

/// Checks the rest of S5, and S4, for a member that wants more.
fn assert_none_has_more((poor, less): (&Ask, u32), asks: &[Ask], shares: &[u32], told: &str) {
    for (rich, &more) in asks.iter().zip(shares) {
        assert!(more <= rich.floor.max(rich.wants), "S5: {told}");
        let after = u64::from(less + 1) * u64::from(rich.weight);
        let before = u64::from(more) * u64::from(poor.weight);
        assert!(more <= rich.floor || before <= after, "S4: {told}");
    }
}

#[test]
fn shares_are_max_min_within_floors_and_capacity() {
    for seed in 0..5000 {
        let (capacity, asks) = any_asks(&mut Rng::with_seed(seed));

        let shares = shares(capacity, &asks);

        assert_sound(capacity, &asks, &shares);
    }
}

#[test]
fn equal_members_get_equal_shares_and_the_first_get_the_rest() {
    let asks = [ask(1, 20, 0, 1); 3];

    assert_eq!(shares(10, &asks), [4, 3, 3]);
}

#[test]
fn a_share_grows_with_its_weight() {
    assert_eq!(shares(9, &[ask(0, 20, 0, 2), ask(0, 20, 0, 1)]), [6, 3]);
}

#[test]
fn a_small_demand_is_met_and_the_rest_is_shared_by_the_others() {
    let asks = [ask(1, 2, 0, 1), ask(1, 20, 0, 1), ask(1, 20, 0, 1)];

    assert_eq!(shares(12, &asks), [2, 5, 5]);
}

#[test]
fn floors_come_before_demand_and_weight() {
    let asks = [ask(4, 4, 0, 1), ask(1, 20, 0, 100)];

    assert_eq!(shares(6, &asks), [4, 2]);
}

#[test]
fn a_floor_that_does_not_fit_is_not_given_in_part() {
    let asks = [ask(2, 9, 0, 1), ask(2, 9, 0, 1), ask(2, 9, 0, 1)];

    assert_eq!(shares(5, &asks), [3, 2, 0]);
}

#[test]
fn members_that_have_their_floor_keep_it_when_more_members_come() {
    let (old, new) = (ask(2, 2, 2, 1), ask(2, 2, 0, 1));

    assert_eq!(shares(5, &[new, old, new, old]), [0, 2, 0, 2]);
}

#[test]
fn an_unused_share_stays_until_another_member_wants_it() {
    let idle = ask(1, 1, 8, 1);

    assert_eq!(shares(10, &[idle, ask(1, 2, 2, 1)]), [8, 2]);
    assert_eq!(shares(10, &[idle, ask(1, 4, 2, 1)]), [6, 4]);
    assert_eq!(shares(10, &[idle, ask(1, 90, 2, 1)]), [1, 9]);
}

#[test]
fn shares_that_were_taken_up_do_not_move_again() {
    for seed in 0..2000 {
        let (capacity, mut asks) = any_asks(&mut Rng::with_seed(seed));
        let first = shares(capacity, &asks);
        for (ask, share) in asks.iter_mut().zip(&first) {
            ask.has = *share;
        }

        assert_eq!(shares(capacity, &asks), first, "seed {seed}: {asks:?}");
    }
}

#[test]
fn extreme_numbers_do_not_overflow() {
    let most = u32::MAX;
    let asks = [ask(0, most, 0, most), ask(0, most, most, 0)];

    assert_eq!(shares(5, &asks).iter().sum::<u32>(), 5);
}
