//! The alarm of the model: a task for each time that it is set, which races with everything else.

use std::sync::Arc;

use super::{Alarmed, PACE};
use crate::time::{self, Moment};

/// An alarm that is due late never goes off.
pub(super) fn set<A: Alarmed + 'static>(at: Moment, whose: &Arc<A>) -> bool {
    let whose = Arc::downgrade(whose);
    drop(shuttle::future::spawn(async move {
        let mut next = Some(at);
        while let Some(at) = next {
            time::sleep_until(Some(at + PACE)).await;
            let Some(whose) = whose.upgrade() else { return };
            next = whose.alarm(at, time::now());
        }
    }));
    true
}

/// The task finds out by itself.
pub(crate) fn forget<A: Alarmed + 'static>(_: &A) {}

/// Tasks of the model are not waited for.
pub(crate) fn drop_elsewhere<T>(_: T) {}
