//! Panics during a play: tokio keeps those of a task to itself, so they are caught by the hook. Ordered ones do not count.

use std::cell::RefCell;
use std::panic;
use std::sync::Once;

use crate::backend::ORDERED;

thread_local! {
    /// Whether this thread plays, and the first panic that nobody ordered.
    static SEEN: RefCell<(bool, Option<String>)> = const { RefCell::new((false, None)) };
}

/// While it lives, panics on this thread are kept and not reported.
#[derive(Debug)]
pub(super) struct Watch(());

impl Watch {
    pub(super) fn begin() -> Self {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            let report = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                if !keep(&info.to_string()) {
                    report(info);
                }
            }));
        });
        SEEN.with_borrow_mut(|seen| *seen = (true, None));
        Self(())
    }

    /// The first panic that nobody ordered.
    pub(super) fn end(self) -> Option<String> {
        SEEN.with_borrow_mut(std::mem::take).1
    }
}

/// The first panic that nobody ordered, so far.
pub(super) fn seen() -> Option<String> {
    SEEN.with_borrow(|seen| seen.1.clone())
}

/// False if this thread does not play.
fn keep(text: &str) -> bool {
    SEEN.with_borrow_mut(|(plays, first)| {
        if *plays && !text.contains(ORDERED) {
            first.get_or_insert_with(|| text.to_owned());
        }
        *plays
    })
}
