//! Where the connections of sandboxes come from and go: between two tests of one process they are
//! parked, so that a test need not open one.
//!
//! A connection must outlive the runtime of its test, so it is opened in a runtime of this module.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use cenote::Manager;
use sqlx::{Connection, Error};
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinSet;

use super::budget::{Budget, Slot};
use super::dialects::Sandboxed;
use super::{Key, place};
use crate::dialect::Dialect;
use crate::error::lost;
use crate::manager::Sql;
use crate::session::Session;
use crate::template::Template;

/// How long a connection is parked before it is closed.
const PARKED: Duration = Duration::from_millis(300);

/// What a sandbox begins with.
pub(crate) enum Ready {
    /// A parked session, which has its slot.
    Session(Box<dyn Any + Send>),
    /// The right to open a connection. A database in memory needs none.
    Slot(Option<Slot>),
}

impl Ready {
    /// Takes a parked session of this URL, or waits for a slot.
    pub(crate) async fn take<DB: Dialect>(url: &str) -> Result<Self, Error> {
        if let Some(session) = unpark(url) {
            return Ok(Self::Session(session));
        }
        let Some(budget) = budget::<DB>(url)? else {
            return Ok(Self::Slot(None));
        };
        // In a runtime whose clock no test pauses.
        let slots = in_background(async move { budget.take(1).await }).await?;
        let slot = slots.into_iter().next().map(|(_, slot)| slot);
        Ok(Self::Slot(slot))
    }
}

fn budget<DB: Dialect>(url: &str) -> Result<Option<Budget>, Error> {
    let place = place::<DB>(url)?;
    let budget = place.map(|place| Budget::of(&place, <DB as Sandboxed>::BUDGET));
    budget.transpose()
}

/// Opens the one connection of a sandbox, and begins its transaction.
pub(crate) async fn open<DB: Dialect>(
    template: &Arc<Template<DB>>,
    key: &Key,
) -> Result<Session<DB>, Error> {
    let mut slot = match key.take_ready() {
        Some(Ready::Slot(slot)) => slot,
        Some(Ready::Session(session)) => {
            let mut session = session.downcast::<Session<DB>>().map_err(|_| {
                lost("bug: a connection of another database is parked under this URL")
            })?;
            session.template = Arc::clone(template);
            match session.enter_sandbox().await {
                Ok(()) => return Ok(*session),
                // The server has closed it meanwhile.
                Err(_) => session.state.slot.take(),
            }
        }
        None => {
            return Err(lost(
                "the connection of the sandbox is lost, and its data with it",
            ));
        }
    };
    let opening = Arc::clone(template);
    let opened = in_background(async move {
        let mut connection = opening.connect().await?;
        opening.apply_settings(&mut connection).await?;
        let brake = DB::brake(&mut connection, &opening).await?;
        Ok::<_, Error>((connection, brake))
    });
    let (connection, brake) = opened.await?;
    let mut session = Session::new(connection, brake, Arc::clone(template));
    session.state.slot = slot.take();
    session.enter_sandbox().await?;
    Ok(session)
}

/// Rolls the sandbox back. The connection is parked if it is clean and no other process waits for
/// its slot.
pub(crate) async fn go_home<DB: Dialect>(
    manager: &Sql<DB>,
    key: &Key,
    mut session: Session<DB>,
) -> Result<(), Error> {
    session.leave_sandbox();
    manager.clean(&mut session).await?;
    let budget = budget::<DB>(&key.url)?;
    match budget {
        Some(budget) if session.state.slot.is_some() && !budget.is_short() => {
            park(&key.url, session);
            Ok(())
        }
        _ => session.connection.close().await,
    }
}

struct Parked {
    number: u64,
    url: String,
    session: Box<dyn Any + Send>,
}

/// The parked sessions of this process, and how many there have been.
static PARK: Mutex<(Vec<Parked>, u64)> = Mutex::new((Vec::new(), 0));

fn park<DB: Dialect>(url: &str, session: Session<DB>) {
    let mut park = PARK.lock().unwrap_or_else(PoisonError::into_inner);
    park.1 += 1;
    let number = park.1;
    park.0.push(Parked {
        number,
        url: url.to_owned(),
        session: Box::new(session),
    });
    drop(park);
    background().spawn(async move {
        tokio::time::sleep(PARKED).await;
        drop(take_parked(|parked| parked.number == number));
    });
}

fn unpark(url: &str) -> Option<Box<dyn Any + Send>> {
    take_parked(|parked| parked.url == url)
}

fn take_parked(wanted: impl Fn(&Parked) -> bool) -> Option<Box<dyn Any + Send>> {
    let mut park = PARK.lock().unwrap_or_else(PoisonError::into_inner);
    let at = park.0.iter().position(wanted)?;
    Some(park.0.swap_remove(at).session)
}

/// Runs the future where connections of sandboxes live. If this is dropped, the future is too.
pub(super) async fn in_background<T: Send + 'static>(
    future: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    let mut task = JoinSet::new();
    task.spawn_on(future, background());
    let done = task.join_next().await;
    done.and_then(Result::ok)
        .unwrap_or(Err(Error::WorkerCrashed))
}

/// The runtime in which connections of sandboxes live, on a thread of its own.
fn background() -> &'static Handle {
    static BACKGROUND: OnceLock<Handle> = OnceLock::new();
    BACKGROUND.get_or_init(|| {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("the system allows one more runtime");
        let handle = runtime.handle().clone();
        let thread = std::thread::Builder::new().name(String::from("cenote-sandbox"));
        let started = thread.spawn(move || runtime.block_on(std::future::pending::<()>()));
        drop(started.expect("the system allows one more thread"));
        handle
    })
}
