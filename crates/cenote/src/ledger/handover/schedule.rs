//! The schedules of a program: every order of its steps, depth first.
//!
//! Orders that no thread can tell apart are played once. Each thread announces its next step, and
//! the model tries a switch to another thread only where it makes a difference: before the ledger's
//! lock is taken, before a waiter looks into its mailbox, and before a wake-up. While a thread is
//! inside the ledger, only a waiter that looks into its mailbox can go on. It may come before each
//! lock of a mailbox.

use std::cell::RefCell;

use shuttle::scheduler::{DfsScheduler, Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, Runner, current};

/// More threads than any program has.
const MOST_THREADS: usize = 8;

thread_local! {
    static THREADS: RefCell<[Thread; MOST_THREADS]> = RefCell::default();
}

#[derive(Clone, Copy, Default)]
struct Thread {
    next: Step,
    /// How many points for a switch it has passed since it announced its step.
    points: usize,
    /// No other thread is switched to.
    is_quiet: bool,
}

/// The step that a thread is about to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Step {
    /// To begin. Every thread goes as far as its first step before any thread takes one.
    #[default]
    Begin,
    /// To sleep, or to go on after it was woken.
    Sleep,
    /// To take the ledger's lock.
    Enter,
    /// To leave the ledger.
    Leave,
    /// To look into its mailbox, without the ledger's lock.
    Look,
    /// To wake a waiter.
    Wake,
}

/// Plays `program` in every order. Returns how many orders there are.
pub(super) fn exhaust(program: impl Fn() + Send + Sync + 'static) -> usize {
    let mut config = Config::new();
    config.stack_size = 256 * 1024;
    Runner::new(Every(DfsScheduler::new(None, false)), config).run(move || {
        THREADS.take();
        about_to(Step::Sleep);
        quietly(&program);
    })
}

/// Announces the next step of this thread.
pub(super) fn about_to(next: Step) {
    with_mine(|thread| {
        // Inside the ledger a thread only takes and releases locks of mailboxes, with one point
        // before each.
        let in_pairs = thread.next != Step::Leave || thread.points % 2 == 0;
        assert!(in_pairs, "a point that does not belong to a mailbox");
        thread.next = next;
        thread.points = 0;
    });
}

/// Runs `act` without a switch to another thread.
pub(super) fn quietly<T>(act: impl FnOnce() -> T) -> T {
    let before = with_mine(|thread| std::mem::replace(&mut thread.is_quiet, true));
    let done = act();
    with_mine(|thread| thread.is_quiet = before);
    done
}

fn with_mine<T>(act: impl FnOnce(&mut Thread) -> T) -> T {
    THREADS.with_borrow_mut(|threads| act(&mut threads[usize::from(current::me())]))
}

struct Every(DfsScheduler);

impl Scheduler for Every {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.0.new_execution()
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        let choice = THREADS.with_borrow_mut(|threads| choose(threads, runnable, current));
        match &choice[..] {
            [only] => Some(only.id()),
            several => self.0.next_task(several, current, is_yielding),
        }
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// The threads that the model tries next.
fn choose<'a>(
    threads: &mut [Thread; MOST_THREADS],
    runnable: &[&'a Task],
    current: Option<TaskId>,
) -> Vec<&'a Task> {
    let step = |task: &Task| threads[usize::from(task.id())].next;
    let current = runnable.iter().find(|task| Some(task.id()) == current);
    let begins = runnable.iter().find(|task| step(task) == Step::Begin);
    let is_inside = threads.iter().any(|thread| thread.next == Step::Leave);
    let candidates = runnable.iter().copied().filter(|task| {
        let step = step(task);
        !is_inside || matches!(step, Step::Leave | Step::Look | Step::Sleep)
    });
    let candidates: Vec<_> = candidates.collect();
    if let Some(current) = current {
        let thread = &mut threads[usize::from(current.id())];
        if thread.is_quiet {
            return vec![current];
        }
        thread.points += 1;
        // The release of a mailbox's lock is one step with whatever follows it.
        let releases = matches!(thread.next, Step::Leave | Step::Look) && thread.points % 2 == 0;
        if releases {
            return vec![current];
        }
    }
    begins.map_or(candidates, |task| vec![task])
}
