//! The watch over the statements of a session. SQLite's own parser tells what each of them does, by
//! the authorizer. No text is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, ffi};

use crate::brake::Brake;

/// How many steps SQLite's virtual machine runs between two looks at the brake: less than a tenth
/// of a millisecond.
const STEPS: i32 = 4000;

/// Pragmas that leave the session as it is, also if they have an argument.
const HARMLESS: [&str; 18] = [
    "application_id",
    "foreign_key_check",
    "foreign_key_list",
    "function_list",
    "incremental_vacuum",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "module_list",
    "optimize",
    "pragma_list",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
    "wal_checkpoint",
];

/// Installs the handlers. `changed` becomes true when a statement is prepared that changes the
/// session (a temporary table, an attached database, a pragma), and when a handler is replaced.
pub(crate) fn begin(
    connection: &Connection,
    changed: &Arc<AtomicBool>,
    brake: &Arc<Brake>,
) -> rusqlite::Result<()> {
    let (mark, stop) = (Mark(Arc::clone(changed)), Arc::clone(brake));
    connection.authorizer(Some(move |context: AuthContext<'_>| {
        if stop.is_pulled() {
            return Authorization::Deny;
        }
        if changes_session(&context.action) {
            mark.set();
        }
        Authorization::Allow
    }))?;
    let (mark, stop) = (Mark(Arc::clone(changed)), Arc::clone(brake));
    let is_pulled = move || {
        let _kept_with_the_handler = &mark;
        stop.is_pulled()
    };
    connection.progress_handler(STEPS, Some(is_pulled))
}

/// Marks a session as changed. Its destructor does, too: a handler of ours is dropped when a
/// closure sets another one, which the next user must not have.
struct Mark(Arc<AtomicBool>);

impl Mark {
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.set();
    }
}

fn changes_session(action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::CreateTempIndex { .. }
        | AuthAction::CreateTempTable { .. }
        | AuthAction::CreateTempTrigger { .. }
        | AuthAction::CreateTempView { .. }
        | AuthAction::Attach { .. } => true,
        // The name of the file is not known before the statement runs.
        AuthAction::Unknown { code, .. } => *code == ffi::SQLITE_ATTACH,
        AuthAction::Pragma {
            pragma_name,
            pragma_value: Some(_),
        } => !HARMLESS.contains(&pragma_name.to_ascii_lowercase().as_str()),
        _ => false,
    }
}
