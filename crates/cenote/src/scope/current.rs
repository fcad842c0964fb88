//! The scope that a future runs in. Code that is called while the future is polled sees it.

use std::cell::OnceCell;
use std::future::Future;

use super::Scope;
use crate::rt;

// Empty until code asks for the scope.
rt::task_local!(static SCOPE: OnceCell<Scope>);

pub(super) fn with<F: Future>(scope: Scope, future: F) -> impl Future<Output = F::Output> {
    SCOPE.scope(OnceCell::from(scope), future)
}

pub(super) fn current() -> Option<Scope> {
    let found = SCOPE.try_with(|cell| cell.get_or_init(Scope::new).clone());
    found.ok()
}

pub(super) fn is_inside() -> bool {
    SCOPE.try_with(|_| ()).is_ok()
}

/// Makes a call in the scope of `cell`. If that is empty, the first code that asks for the scope
/// opens it.
pub(super) fn enter<T>(cell: &mut Option<Scope>, call: impl FnOnce() -> T) -> T {
    let inside = cell.take().map_or_else(OnceCell::new, OnceCell::from);
    SCOPE.sync_scope(inside, || {
        let _back = Back(cell);
        call()
    })
}

/// Takes back the scope that was opened meanwhile, also if the call panics.
struct Back<'a>(&'a mut Option<Scope>);

impl Drop for Back<'_> {
    fn drop(&mut self) {
        *self.0 = SCOPE.with(|cell| cell.get().cloned());
    }
}
