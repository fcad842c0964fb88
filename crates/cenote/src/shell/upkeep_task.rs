//! The upkeep task: one for a group of pools, how it is woken, and how the rest learns whether
//! there is one. Most pools are a group of one.
//!
//! The task holds no strong reference to a pool while it sleeps, so a forgotten pool is dropped. It
//! ends with the last pool of its group.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::carry_out::Place;
use super::kind::Kind;
use super::shared::PoolRef;
use crate::log::Log;
use crate::rt::sync::{AtomicBool, Mutex, MutexGuard, Ordering, PoisonError};
use crate::rt::{self, RuntimeId};
use crate::time::{self, Moment};

/// Has this pool kept up by the task of its group, which is started unless there is one. Called on
/// every acquire by the ledger: a task that ended with its runtime is started again on the runtime
/// of the next caller. Returns whether there is one now.
#[inline]
pub(crate) fn start<K: Kind>(shared: &PoolRef<K>) -> bool {
    shared.upkeep.is_running() || join(shared)
}

#[cold]
fn join<K: Kind>(shared: &PoolRef<K>) -> bool {
    let Upkeep {
        running,
        number,
        group,
    } = &shared.upkeep;
    let mut state = group.lock();
    if running.swap(true, Ordering::AcqRel) {
        return true;
    }
    let member = Member {
        pool: K::downgrade(shared),
        due: None,
        guest: None,
    };
    state.members.insert(*number, member);
    let waker = state.call(*number);
    let watch = (state.task == 0).then(|| state.begin(group, rt::runtime_id()));
    drop(state);
    wake(waker);
    watch.is_none_or(K::start_upkeep)
}

/// The upkeep is overdue, so the task may be on a runtime that is no longer driven: it is replaced
/// by one on the runtime of this caller. A task on this very runtime is only late.
#[cold]
pub(crate) fn take_over<K: Kind>(shared: &PoolRef<K>) {
    let here = rt::runtime_id();
    let Upkeep { number, group, .. } = &shared.upkeep;
    let mut state = group.lock();
    if state.runtime == here {
        return;
    }
    let waker = state.call(*number);
    let watch = state.begin(group, here);
    drop(state);
    // The task that was replaced ends.
    wake(waker);
    let _ = K::start_upkeep(watch);
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The upkeep of one pool.
pub(crate) struct Upkeep<K: Kind> {
    /// There is a task, and it knows this pool. Read on every acquire by the ledger.
    running: AtomicBool,
    /// The number of the pool in its group.
    number: u64,
    group: Arc<UpkeepGroup<K>>,
}

impl<K: Kind> Upkeep<K> {
    pub(crate) fn new(group: Arc<UpkeepGroup<K>>) -> Self {
        let mut state = group.lock();
        state.numbers += 1;
        let number = state.numbers;
        drop(state);
        Self {
            running: AtomicBool::new(false),
            number,
            group,
        }
    }

    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }

    /// Wakes the task for this pool, if it knows it. A guest keeps the pool alive until the task
    /// has run.
    pub(crate) fn ring(&self, guest: Option<PoolRef<K>>) {
        let mut state = self.group.lock();
        let Some(member) = state.members.get_mut(&self.number) else {
            drop(state);
            return;
        };
        let before = guest.and_then(|guest| member.guest.replace(guest));
        let waker = state.call(self.number);
        drop(state);
        drop(before);
        wake(waker);
    }

    /// Leaves a job to the task. If there is none, the job is dropped.
    #[cfg(not(cenote_model))]
    pub(crate) fn leave(&self, job: K::Job) {
        let mut state = self.group.lock();
        if state.task == 0 {
            drop(state);
            drop(job);
            return;
        }
        state.left.push(job);
        let waker = state.call(self.number);
        drop(state);
        wake(waker);
    }
}

/// The pool is gone. The task ends with the last one.
impl<K: Kind> Drop for Upkeep<K> {
    fn drop(&mut self) {
        let mut state = self.group.lock();
        let waker = state.call(self.number);
        state.set_due(self.number, None);
        let left = state.members.remove(&self.number);
        drop(state);
        drop(left);
        wake(waker);
    }
}

/// Pools that share one upkeep task.
pub(crate) struct UpkeepGroup<K: Kind> {
    state: Mutex<State<K>>,
}

impl<K: Kind> Default for UpkeepGroup<K> {
    fn default() -> Self {
        let state = State {
            numbers: 0,
            task: 0,
            tasks: 0,
            runtime: None,
            rung: false,
            waker: None,
            members: BTreeMap::new(),
            due: BTreeSet::new(),
            left: Vec::new(),
        };
        Self {
            state: Mutex::new(state),
        }
    }
}

struct State<K: Kind> {
    /// How many pools the group has had.
    numbers: u64,
    /// The number of the current task; zero if there is none.
    task: u64,
    /// How many tasks were started.
    tasks: u64,
    /// The runtime of the current task, if the caller that started it had one.
    runtime: Option<RuntimeId>,
    rung: bool,
    waker: Option<Waker>,
    /// The pools that the task knows, by number.
    members: BTreeMap<u64, Member<K>>,
    /// When which of them is due.
    due: BTreeSet<(Moment, u64)>,
    /// Jobs that a caller has left, and that the task goes on with.
    left: Vec<K::Job>,
}

struct Member<K: Kind> {
    pool: K::Weak,
    due: Option<Moment>,
    /// Keeps the pool alive until the task has done the work that its last lease left behind.
    guest: Option<PoolRef<K>>,
}

impl<K: Kind> State<K> {
    /// There is a new task, for all members.
    fn begin(&mut self, group: &Arc<UpkeepGroup<K>>, runtime: Option<RuntimeId>) -> Watch<K> {
        self.tasks += 1;
        self.task = self.tasks;
        self.runtime = runtime;
        // Made before the task, which may be dropped before it was ever polled.
        Watch {
            group: Arc::clone(group),
            task: self.task,
        }
    }

    /// The pool is due now. Returns the waker of the task.
    fn call(&mut self, pool: u64) -> Option<Waker> {
        self.set_due(pool, Some(Moment::PAST));
        self.rung = true;
        self.waker.take()
    }

    fn set_due(&mut self, pool: u64, at: Option<Moment>) {
        let Some(member) = self.members.get_mut(&pool) else {
            return;
        };
        if let Some(before) = mem::replace(&mut member.due, at) {
            self.due.remove(&(before, pool));
        }
        self.due.extend(at.map(|at| (at, pool)));
    }
}

/// What the task does next.
enum Next<K: Kind> {
    GoOn(Vec<K::Job>),
    KeepUp(u64, PoolRef<K>),
    Sleep(Option<Moment>),
    End,
}

impl<K: Kind> UpkeepGroup<K> {
    /// The next step of a task that has slept until `slept`. Its timer is right, whatever the
    /// clock says.
    fn next(&self, task: u64, slept: Option<Moment>) -> Next<K> {
        let now = slept.map_or_else(time::now, |at| time::now().max(at));
        let mut state = self.lock();
        if state.task != task {
            return Next::End;
        }
        if !state.left.is_empty() {
            return Next::GoOn(mem::take(&mut state.left));
        }
        while let Some((at, pool)) = state.due.first().copied() {
            if at > now {
                return Next::Sleep(Some(at));
            }
            state.set_due(pool, None);
            let member = state.members.get_mut(&pool);
            let kept = member.and_then(|one| one.guest.take().or_else(|| K::upgrade(&one.pool)));
            if let Some(kept) = kept {
                return Next::KeepUp(pool, kept);
            }
        }
        if state.members.is_empty() {
            state.task = 0;
            return Next::End;
        }
        Next::Sleep(None)
    }

    /// The pool is due again at `at`, or sooner if it rang meanwhile.
    fn note_next(&self, pool: u64, at: Option<Moment>) {
        let mut state = self.lock();
        let rung = |member: &Member<K>| member.due.is_some();
        if !state.members.get(&pool).is_some_and(rung) {
            state.set_due(pool, at);
        }
    }

    /// Ends when the task is rung, at `at`, or when the task was replaced. Returns until when it
    /// has slept, if that was the end.
    async fn rung_or_at(&self, task: u64, at: Option<Moment>) -> Option<Moment> {
        let mut timer = pin!(time::sleep_until(at));
        poll_fn(|context| {
            let mut waker = Some(context.waker().clone());
            let mut state = self.lock();
            if state.task != task || mem::take(&mut state.rung) {
                drop(state);
                return Poll::Ready(None);
            }
            mem::swap(&mut state.waker, &mut waker);
            drop(state);
            drop(waker);
            timer.as_mut().poll(context).map(|()| at)
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) async fn run<K: Kind>(watch: Watch<K>) {
    let Watch { group, task } = &watch;
    let mut slept = None;
    loop {
        match group.next(*task, slept) {
            Next::GoOn(jobs) => {
                for job in jobs {
                    let _ = K::start(job);
                }
            }
            Next::KeepUp(number, pool) => group.note_next(number, keep_up(&pool)),
            Next::Sleep(at) => slept = group.rung_or_at(*task, at).await,
            Next::End => return,
        }
    }
}

/// One round of upkeep. Returns when the next is due.
fn keep_up<K: Kind>(shared: &PoolRef<K>) -> Option<Moment> {
    if shared.clock.notice_pause() {
        // The alarm knows the real time only, so the waiters need timers of their own.
        shared.call_helpers();
    }
    shared.ask_recovery();
    let upkeep = shared.order(Place::Task, |ledger, now, orders| {
        ledger.stand_in_for_alarm(now, orders);
        ledger.upkeep(now, orders)
    });
    for holder in &upkeep.leaked {
        shared.observers.leaked(holder);
    }
    if Log::is_on() {
        shared.observers.write(|log| log.flush(&shared.name));
    }
    upkeep.next
}

/// The task of a group. Dropped, it says that there is none.
pub(crate) struct Watch<K: Kind> {
    group: Arc<UpkeepGroup<K>>,
    task: u64,
}

impl<K: Kind> Drop for Watch<K> {
    fn drop(&mut self) {
        let mut state = self.group.lock();
        if state.task != self.task {
            return;
        }
        state.task = 0;
        state.rung = false;
        state.due.clear();
        let members = mem::take(&mut state.members);
        let left = (state.waker.take(), mem::take(&mut state.left));
        drop(state);
        drop(left);
        for member in members.into_values() {
            drop(member.guest);
            // The runtime may be shutting down while a caller waits on another: it starts the task
            // there.
            if let Some(shared) = K::upgrade(&member.pool) {
                shared.upkeep.running.store(false, Ordering::Release);
                drop(shared.ledger_off_trays());
                shared.ask_for_help();
            }
        }
    }
}
