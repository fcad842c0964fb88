//! Tests of the ledger: random histories, and one file for each kind of promise.

use std::collections::BTreeSet;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

mod checked_before_lent;
mod clock_skew;
mod delivery;
mod health;
mod history;
mod history_callers;
mod history_checks;
mod history_trays;
mod history_work;
mod holders_and_circles;
mod make_before_break;
mod memory;
mod opens_for_waiters;
mod reserved_places;
mod rig;
mod rig_waiter;
mod slots_on_trays;
mod stranded;
mod token;
mod unpolled_waiters;
mod upkeep_is_woken;
mod waiters_time_out;

use super::deadlines::MISSED;
use super::upkeep::Upkeep;
use super::*;
use crate::config::{Config, IdleOrder, Nested, OnOpenError};
use crate::error::{AcquireError, Cause};
use crate::status::{CloseReason, Status};
use crate::timed_out::{Phase, TimedOut};
use rig::{CROWD, Rig, SECOND, asker, begun, limits, of_size, refused};
use rig_waiter::{Waiter, Woken, peek};
use token::{Token, token_of};

#[test]
fn a_slot_can_take_no_edge_but_those_in_the_table() {
    use State::{Checking, Cleaning, Closing, Idle, Leased, OnTray, Opening, Vacant};
    let all = [
        Vacant, Opening, Idle, Leased, OnTray, Checking, Cleaning, Closing,
    ];
    let table: [(State, &[State]); State::COUNT] = [
        (Vacant, &[Opening]),
        (Opening, &[Vacant, Idle, Leased, Checking, Closing]),
        (Idle, &[Leased, Checking, Closing]),
        (
            Leased,
            &[Vacant, Idle, Leased, OnTray, Checking, Cleaning, Closing],
        ),
        (OnTray, &[Idle, Leased]),
        (Checking, &[Vacant, Idle, Leased, Closing]),
        (Cleaning, &[Vacant, Idle, Leased, Closing]),
        (Closing, &[Vacant]),
    ];

    for (from, expected) in table {
        let allowed: Vec<_> = all.into_iter().filter(|to| from.may_become(*to)).collect();
        assert_eq!(allowed, expected, "{from:?}");
    }
}
