//! The alarm of the model: a task for each time that it is set, which races with everything else.

use std::sync::Arc;

use super::{Alarmed, PACE};
use crate::moment::Moment;
use crate::rt;

/// Nobody waits for the task: what is due late never goes off.
pub(crate) fn set<A: Alarmed + 'static>(at: Moment, whose: &Arc<A>) {
    let whose = Arc::downgrade(whose);
    drop(shuttle::future::spawn(async move {
        let mut next = Some(at);
        while let Some(at) = next {
            rt::sleep_until(Some(at + PACE)).await;
            let Some(whose) = whose.upgrade() else { return };
            next = whose.alarm(at, rt::now());
        }
    }));
}

/// The task finds out by itself.
pub(crate) fn forget<A: Alarmed + 'static>(_: &A) {}

/// Nobody waits for a task of the model.
pub(crate) fn drop_elsewhere<T>(_: T) {}

/// There is no tick.
pub(crate) fn rouse() {}
