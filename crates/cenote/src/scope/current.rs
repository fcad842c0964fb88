//! The scope that a future runs in. Code that is called while the future is polled sees it.

use std::cell::OnceCell;
use std::future::Future;

use super::Scope;
use crate::rt;

rt::task_local!(static SCOPE: Current);

struct Current {
    /// Empty until code asks for the scope.
    scope: OnceCell<Scope>,
    make: fn() -> Scope,
}

pub(super) fn with<F: Future>(scope: Scope, future: F) -> impl Future<Output = F::Output> {
    let current = Current {
        scope: OnceCell::from(scope),
        make: Scope::new,
    };
    SCOPE.scope(current, future)
}

pub(super) fn current() -> Option<Scope> {
    let found = SCOPE.try_with(|current| current.scope.get_or_init(current.make).clone());
    found.ok()
}

pub(super) fn is_inside() -> bool {
    SCOPE.try_with(|_| ()).is_ok()
}

/// Makes a call in the scope of `cell`. If that is empty, the first code that asks for the scope
/// opens it by `make`.
pub(super) fn enter<T>(
    cell: &mut Option<Scope>,
    make: fn() -> Scope,
    call: impl FnOnce() -> T,
) -> T {
    let scope = cell.take().map_or_else(OnceCell::new, OnceCell::from);
    SCOPE.sync_scope(Current { scope, make }, || {
        let _back = Back(cell);
        call()
    })
}

/// Takes back the scope that was opened meanwhile, also if the call panics.
struct Back<'a>(&'a mut Option<Scope>);

impl Drop for Back<'_> {
    fn drop(&mut self) {
        *self.0 = SCOPE.with(|current| current.scope.get().cloned());
    }
}
