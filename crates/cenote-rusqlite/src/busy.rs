//! The wait for a writer in another process. SQLite's own wait cannot be interrupted, so this is
//! one that looks at the brake.

use std::cell::RefCell;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rusqlite::Connection;

use crate::brake::Brake;

/// The longest pause between two tries. SQLite's own wait has pauses of up to 100 ms.
const LONGEST_PAUSE: Duration = Duration::from_millis(25);

thread_local! {
    /// SQLite's handler is a plain function. A connection has a thread of its own, which leads to
    /// what the handler must know.
    static WAIT: RefCell<Option<Wait>> = const { RefCell::new(None) };
}

struct Wait {
    brake: Arc<Brake>,
    limit: Duration,
    waited: Duration,
}

/// Lets the connection of this thread wait up to `limit`.
pub(crate) fn begin(
    connection: &Connection,
    brake: &Arc<Brake>,
    limit: Duration,
) -> rusqlite::Result<()> {
    WAIT.set(Some(Wait {
        brake: Arc::clone(brake),
        limit,
        waited: Duration::ZERO,
    }));
    connection.busy_handler(Some(|tries| {
        WAIT.with_borrow_mut(|wait| goes_on(wait, tries))
    }))
}

/// Pauses, and returns whether another try is worth it. `tries` is zero at the begin of a wait.
fn goes_on(wait: &mut Option<Wait>, tries: i32) -> bool {
    let Some(wait) = wait else { return false };
    if tries == 0 {
        wait.waited = Duration::ZERO;
    }
    if wait.brake.is_pulled() || wait.waited >= wait.limit {
        return false;
    }
    let pause = Duration::from_millis(1 + u64::from(tries.unsigned_abs()));
    let pause = pause.min(LONGEST_PAUSE).min(wait.limit - wait.waited);
    thread::sleep(pause);
    wait.waited += pause;
    true
}
