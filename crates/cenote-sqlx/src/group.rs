//! Writes that wait for the same writer are committed together: one commit costs as much as several
//! writes.
//!
//! A waiting write is a job in the group, and its caller is in the queue of the writer. The caller
//! whose turn comes is the leader. It begins a transaction, and a task runs one job after another,
//! until none is left or the limit is reached. Their callers leave the queue. All are told after
//! the commit.
//!
//! A statement that fails undoes itself and ends the group: the jobs before it are committed, and
//! the others are left in the group. If the commit fails, the jobs are not committed, and each runs
//! alone. The task goes on if the leader is dropped, so a write is whole or absent. If the runtime
//! of the task ends before the commit, each job runs alone, too.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::panic::Location;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use cenote::status::UNKNOWN_SITE;
use sqlx::Error;
use tokio::runtime::Handle;

use crate::command::Command;
use crate::db::Db;
use crate::dialect::Dialect;
use crate::dirt::Dirt;
use crate::error::lost;
use crate::label;
use crate::lazy::Ambient;
use crate::lease::Lease;
use crate::reading::Access;
use crate::transaction::TransactionOptions;
use crate::within::now;

/// A group is committed when it has so many jobs, or when it has run for so long. Others wait for
/// the writer, too.
const MOST: usize = 64;
const LONGEST: Duration = Duration::from_millis(5);

/// The jobs that wait.
pub(crate) struct Group<DB: Dialect>(Mutex<VecDeque<Arc<Job<DB>>>>);

struct Job<DB: Dialect>(Mutex<State<DB>>);

struct State<DB: Dialect> {
    command: Command<DB>,
    stage: Stage<DB>,
    /// The caller, while it waits.
    waker: Option<Waker>,
}

enum Stage<DB: Dialect> {
    /// It is in the group.
    Waiting,
    /// A leader has it.
    Taken,
    /// Its group was not committed.
    Alone,
    Done(Result<DB::QueryResult, Error>),
    /// Its caller has the result, or is gone.
    Over,
}

impl<DB: Dialect> Db<DB> {
    /// Runs a write, together with others that wait. Returns the command if it must run by itself.
    pub(crate) async fn in_group(
        &self,
        site: &'static Location<'static>,
        command: Command<DB>,
    ) -> ControlFlow<Result<DB::QueryResult, Error>, Command<DB>> {
        if self.pool().annex().is_none() || !joins(&command) || self.is_in_scope() {
            return ControlFlow::Continue(command);
        }
        let site = match site.file().contains("sqlx-core") {
            true => UNKNOWN_SITE,
            false => site,
        };
        let group = &self.pool().manager().template.group;
        let job = group.add(command);
        let member = Member { group, job: &job };
        let mut turn = self.turn_at_once(true);
        turn.deadline = self.deadline();
        // A leader may have taken the job just before the caller's turn.
        let leased = job.or_taken(self.bind(site, turn)).await;
        let lead = match leased.filter(|_| group.leave(&job)).transpose() {
            Ok(lead) => lead,
            Err(error) => return ControlFlow::Break(Err(error)),
        };
        if let Some(lease) = lead {
            let runtime = Handle::try_current().ok();
            let next = runtime.and_then(|runtime| Some((runtime, group.next()?)));
            let Some((runtime, next)) = next else {
                return ControlFlow::Break(self.write_alone(site, lease, job.command()).await);
            };
            let template = Arc::clone(&self.pool().manager().template);
            let taken = Taken {
                jobs: vec![(Arc::clone(&job), None), (next, None)],
                commits: false,
            };
            runtime.spawn(async move { run(lease, &template.group, taken).await });
        }
        let outcome = job.outcome().await;
        drop(member);
        match outcome {
            Some(outcome) => ControlFlow::Break(outcome),
            None => ControlFlow::Continue(job.command()),
        }
    }

    /// Runs a write while no other waits, on the connection that was used last. Without an idle
    /// one it runs on that of the writer.
    async fn write_alone(
        &self,
        site: &'static Location<'static>,
        mut writer: Lease<DB>,
        command: Command<DB>,
    ) -> Result<DB::QueryResult, Error> {
        let Ok(Some(mut lease)) = self.pool().try_acquire_at(site) else {
            return writer.session_for(command.text()).execute(command).await;
        };
        lease.meter.reset();
        let label = label::in_scope(command.text());
        cenote::Lease::label_metered(&lease, label, &lease.meter);
        lease.right = Some(Box::new(writer));
        let done = lease.execute(command).await;
        lease.right = None;
        done
    }

    /// Returns whether the caller has a connection or a transaction of its own.
    fn is_in_scope(&self) -> bool {
        self.has_pinned() || Ambient::here(self).is_some()
    }
}

/// Returns whether it is one plain write, which may share a transaction: not one that would roll
/// the whole transaction back.
fn joins<DB: Dialect>(command: &Command<DB>) -> bool {
    let reading = command.reading();
    let plain = reading.access == Access::Writes
        && reading.dirt == Dirt::NONE
        && reading.statements == 1
        && !reading.returns;
    let text = command.text();
    let first = text.split_ascii_whitespace().next().unwrap_or_default();
    let verbs = ["insert", "update", "delete", "replace"];
    let verb = verbs.iter().any(|verb| first.eq_ignore_ascii_case(verb));
    let mut words = text.split(|letter: char| !letter.is_ascii_alphabetic());
    plain && verb && !words.any(|word| word.eq_ignore_ascii_case("rollback"))
}

/// Runs the jobs, and more that wait meanwhile, in one transaction.
async fn run<DB: Dialect>(mut lease: Lease<DB>, group: &Group<DB>, mut taken: Taken<DB>) {
    let begun = now();
    let session = lease.session_for("a group of writes");
    let depth = match session.begin(&TransactionOptions::new()).await {
        Ok(depth) => depth,
        Err(error) => return taken.tell(Some(error), Ok(())),
    };
    let (mut ran, mut failed) = (0, None);
    loop {
        if ran == taken.jobs.len() {
            let full = ran >= MOST || now().saturating_duration_since(begun) >= LONGEST;
            let next = if full { None } else { group.next() };
            let Some(next) = next else { break };
            taken.jobs.push((next, None));
        }
        let (job, result) = &mut taken.jobs[ran];
        match session.execute(job.command()).await {
            Ok(done) => *result = Some(done),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
        ran += 1;
    }
    taken.commits = true;
    let committed = session.commit(depth).await;
    drop(lease);
    taken.tell(failed, committed);
}

/// The jobs of a group. If the task of the group ends early, their callers are told.
struct Taken<DB: Dialect> {
    jobs: Vec<Ran<DB>>,
    /// The commit has begun.
    commits: bool,
}

/// A job, and its result if it has run.
type Ran<DB> = (Arc<Job<DB>>, Option<<DB as sqlx::Database>::QueryResult>);

impl<DB: Dialect> Taken<DB> {
    /// Tells the callers of all jobs. Of those without a result, the first one has `failed`, and
    /// the others did not run.
    fn tell(&mut self, failed: Option<Error>, committed: Result<(), Error>) {
        let mut failed = failed.map(|error| Stage::Done(Err(error)));
        // Otherwise the database has answered that nothing was committed.
        let broken = committed.as_ref().err();
        let broken = broken.filter(|error| DB::classify(error).poisons());
        let broken = broken.map(Error::to_string);
        for (job, result) in self.jobs.drain(..) {
            job.end(match (result, &broken) {
                (Some(result), _) if committed.is_ok() => Stage::Done(Ok(result)),
                (Some(_), Some(why)) => Stage::Done(Err(lost(why))),
                (Some(_), None) => Stage::Alone,
                (None, _) => failed.take().unwrap_or(Stage::Alone),
            });
        }
    }
}

impl<DB: Dialect> Drop for Taken<DB> {
    fn drop(&mut self) {
        for (job, _) in self.jobs.drain(..) {
            let why = "the task that ran it ended: the write may be committed or not";
            job.end(match self.commits {
                true => Stage::Done(Err(lost(why))),
                // The connection is rolled back before anyone else can write.
                false => Stage::Alone,
            });
        }
    }
}

/// The place of a caller in the group.
struct Member<'a, DB: Dialect> {
    group: &'a Group<DB>,
    job: &'a Arc<Job<DB>>,
}

impl<DB: Dialect> Drop for Member<'_, DB> {
    fn drop(&mut self) {
        self.group.leave(self.job);
    }
}

impl<DB: Dialect> Group<DB> {
    fn add(&self, command: Command<DB>) -> Arc<Job<DB>> {
        let job = Arc::new(Job(Mutex::new(State {
            command,
            stage: Stage::Waiting,
            waker: None,
        })));
        self.lock().push_back(Arc::clone(&job));
        job
    }

    /// Takes the next job.
    fn next(&self) -> Option<Arc<Job<DB>>> {
        let job = self.lock().pop_front()?;
        job.end(Stage::Taken);
        Some(job)
    }

    /// Takes a job out, as its caller. Returns whether it was there.
    fn leave(&self, job: &Arc<Job<DB>>) -> bool {
        let mut jobs = self.lock();
        let place = jobs.iter().position(|other| Arc::ptr_eq(other, job));
        place.and_then(|place| jobs.remove(place)).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Job<DB>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<DB: Dialect> Default for Group<DB> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<DB: Dialect> Job<DB> {
    /// Waits for the turn of the caller. Returns `None` if a leader takes the job before, and gives
    /// up the caller's place in the queue.
    async fn or_taken<T>(&self, turn: impl Future<Output = T>) -> Option<T> {
        let mut turn = pin!(turn);
        poll_fn(|context| {
            let mut state = self.lock();
            if !matches!(state.stage, Stage::Waiting) {
                return Poll::Ready(None);
            }
            state.waker = Some(context.waker().clone());
            drop(state);
            turn.as_mut().poll(context).map(Some)
        })
        .await
    }

    /// Returns the result, or `None` if the job must run by itself.
    async fn outcome(&self) -> Option<Result<DB::QueryResult, Error>> {
        self.until(|stage| match std::mem::replace(stage, Stage::Over) {
            Stage::Done(outcome) => Some(Some(outcome)),
            Stage::Alone => Some(None),
            other => {
                *stage = other;
                None
            }
        })
        .await
    }

    async fn until<T>(&self, mut look: impl FnMut(&mut Stage<DB>) -> Option<T>) -> T {
        poll_fn(|context| {
            let mut state = self.lock();
            match look(&mut state.stage) {
                Some(seen) => Poll::Ready(seen),
                None => {
                    state.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn command(&self) -> Command<DB> {
        self.lock().command.copy()
    }

    fn end(&self, stage: Stage<DB>) {
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.stage, stage);
        let waker = state.waker.take();
        drop(state);
        drop(before);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<DB>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
