//! A backend under the test's control. Every callback of its manager passes, fails, is slow, hangs
//! or panics on demand.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future;
use std::panic;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use cenote::{LeaseEnd, Manager};

/// What a callback does when it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// It succeeds.
    Pass,
    /// It fails.
    Fail,
    /// It succeeds after this long.
    Slow(Duration),
    /// It never ends. Where it cannot be awaited, it fails.
    Hang,
    /// It panics.
    Panic,
}

impl Gate {
    pub(crate) async fn pass(self, call: Call) -> Result<(), Fault> {
        match self {
            Self::Pass => Ok(()),
            Self::Fail => Err(Fault(call)),
            Self::Slow(delay) => {
                tokio::time::sleep(delay).await;
                Ok(())
            }
            Self::Hang => future::pending().await,
            Self::Panic => explode(call),
        }
    }
}

/// A callback of the manager, or a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// `Manager::open`.
    Open,
    /// `Manager::check`.
    Check,
    /// `Manager::is_broken`.
    IsBroken,
    /// `Manager::needs_cleaning`.
    NeedsCleaning,
    /// `Manager::clean`.
    Clean,
    /// `Manager::close`.
    Close,
    /// The hook before an idle resource is lent.
    BeforeAcquire,
    /// The hook before a resource goes back to idle.
    BeforeRelease,
}

impl Call {
    /// All callbacks and hooks.
    pub const ALL: [Self; 8] = [
        Self::Open,
        Self::Check,
        Self::IsBroken,
        Self::NeedsCleaning,
        Self::Clean,
        Self::Close,
        Self::BeforeAcquire,
        Self::BeforeRelease,
    ];
}

/// The error of a failing callback. It names the callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault(pub Call);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the backend refused {:?}", self.0)
    }
}

impl std::error::Error for Fault {}

/// The state behind a [`GatedManager`]. The test, the manager and all its resources share it.
#[derive(Debug, Default)]
pub struct Backend {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    always: HashMap<Call, Gate>,
    once: HashMap<Call, VecDeque<Gate>>,
    calls: HashMap<Call, usize>,
    opened: u64,
    opening: usize,
    alive: usize,
    peak: usize,
}

impl Backend {
    /// Every later call of `call` does this.
    pub fn always(&self, call: Call, gate: Gate) {
        self.lock().always.insert(call, gate);
    }

    /// The next call of `call` does this. Several gates are used in order.
    pub fn once(&self, call: Call, gate: Gate) {
        self.lock().once.entry(call).or_default().push_back(gate);
    }

    /// Every later call passes.
    pub fn heal(&self) {
        let mut state = self.lock();
        state.always.clear();
        state.once.clear();
    }

    /// Returns how often this was called.
    pub fn calls(&self, call: Call) -> usize {
        self.lock().calls.get(&call).copied().unwrap_or_default()
    }

    /// Returns how many resources exist now.
    pub fn alive(&self) -> usize {
        self.lock().alive
    }

    /// Returns the largest number of resources that existed or were being opened at the same time.
    pub fn peak(&self) -> usize {
        self.lock().peak
    }

    fn gate(&self, call: Call) -> Gate {
        let mut state = self.lock();
        *state.calls.entry(call).or_default() += 1;
        let once = state.once.get_mut(&call).and_then(VecDeque::pop_front);
        once.or_else(|| state.always.get(&call).copied())
            .unwrap_or(Gate::Pass)
    }

    /// Goes through the gate of `call`.
    ///
    /// # Cancel safety
    /// The call counts from its first poll; dropping it afterwards changes nothing.
    pub async fn pass(&self, call: Call) -> Result<(), Fault> {
        let gate = self.gate(call);
        gate.pass(call).await
    }

    /// Goes through the gate of a call that cannot wait. Returns whether it passes.
    fn pass_now(&self, call: Call) -> bool {
        match self.gate(call) {
            Gate::Pass | Gate::Slow(_) => true,
            Gate::Fail | Gate::Hang => false,
            Gate::Panic => explode(call),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Panics on purpose. Such a panic is not printed: a test may order thousands of them, and they
/// would bury an unexpected one.
pub(crate) fn explode(call: Call) -> ! {
    static HUSHED: Once = Once::new();
    HUSHED.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let text = info.payload().downcast_ref::<String>();
            if !text.is_some_and(|text| text.starts_with(ORDERED)) {
                report(info);
            }
        }));
    });
    panic!("{ORDERED} {call:?}")
}

/// The start of the message of a panic on purpose.
pub(crate) const ORDERED: &str = "the backend panicked in";

/// The pooled resource.
#[derive(Debug)]
pub struct Thing {
    /// Numbers the resources of a backend, from 1.
    pub serial: u64,
    /// It must be cleaned before its next use.
    pub dirty: bool,
    /// It is known to be unusable.
    pub broken: bool,
    backend: Arc<Backend>,
}

impl Thing {
    /// Goes through the gate of `call`, for hooks.
    ///
    /// # Cancel safety
    /// As [`Backend::pass`].
    pub async fn pass(&self, call: Call) -> bool {
        self.backend.pass(call).await.is_ok()
    }
}

impl Drop for Thing {
    fn drop(&mut self) {
        self.backend.lock().alive -= 1;
    }
}

/// The manager of a [`Backend`].
#[derive(Clone, Debug)]
pub struct GatedManager(pub Arc<Backend>);

/// Counts an open while it runs, including one that is dropped midway.
struct Opening<'a>(&'a Backend);

impl<'a> Opening<'a> {
    fn begin(backend: &'a Backend) -> Self {
        let mut state = backend.lock();
        state.opening += 1;
        state.peak = state.peak.max(state.opening + state.alive);
        Self(backend)
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.lock().opening -= 1;
    }
}

impl Manager for GatedManager {
    type Resource = Thing;
    type Error = Fault;

    async fn open(&self) -> Result<Thing, Fault> {
        let opening = Opening::begin(&self.0);
        self.0.pass(Call::Open).await?;
        drop(opening);
        let mut state = self.0.lock();
        state.opened += 1;
        state.alive += 1;
        state.peak = state.peak.max(state.opening + state.alive);
        let serial = state.opened;
        drop(state);
        Ok(Thing {
            serial,
            dirty: false,
            broken: false,
            backend: Arc::clone(&self.0),
        })
    }

    async fn check(&self, _: &mut Thing) -> Result<(), Fault> {
        self.0.pass(Call::Check).await
    }

    fn is_broken(&self, thing: &mut Thing, _: LeaseEnd) -> bool {
        !self.0.pass_now(Call::IsBroken) || thing.broken
    }

    fn needs_cleaning(&self, thing: &mut Thing) -> bool {
        !self.0.pass_now(Call::NeedsCleaning) || thing.dirty
    }

    async fn clean(&self, thing: &mut Thing) -> Result<(), Fault> {
        self.0.pass(Call::Clean).await?;
        thing.dirty = false;
        Ok(())
    }

    async fn close(&self, thing: Thing) -> Result<(), Fault> {
        // A resource whose close fails is closed all the same.
        let closed = self.0.pass(Call::Close).await;
        drop(thing);
        closed
    }
}
