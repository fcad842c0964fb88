//! The measurements between two rounds, and the verdict whether they are flat.

use std::fmt;
use std::fs;
use std::time::Duration;

/// The counts of the program's allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heap {
    /// Live bytes.
    pub bytes: usize,
    /// Live allocations.
    pub allocations: usize,
}

/// One quiet moment: no task works, and the pools are empty.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// How long the soak has run.
    pub at: Duration,
    /// How long it will still run, if nothing holds it up.
    pub left: Duration,
    /// Leases handed out so far.
    pub acquired: u64,
    /// The heap.
    pub heap: Heap,
    /// Counts that must be the same in every sample.
    pub counts: Counts,
}

/// Counts in which one more is a leak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Tasks of the runtime.
    pub tasks: usize,
    /// Open file descriptors, if the system shows them.
    pub fds: Option<usize>,
    /// Threads of this process, if the system shows them.
    pub threads: Option<usize>,
    /// Resources that were opened and are not closed.
    pub resources: usize,
}

impl Counts {
    /// Counts files and threads here. The caller counts the others.
    pub(super) fn take(tasks: usize, resources: usize) -> Self {
        let entries = |folder| fs::read_dir(folder).ok().map(Iterator::count);
        Self {
            tasks,
            fds: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
            resources,
        }
    }

    /// Returns the first column in which they differ.
    fn differs_from(&self, other: &Self) -> Option<NotFlat> {
        let columns = [
            ("tasks", Some(other.tasks), Some(self.tasks)),
            ("fds", other.fds, self.fds),
            ("threads", other.threads, self.threads),
            ("resources", Some(other.resources), Some(self.resources)),
        ];
        let (column, before, after) = columns
            .into_iter()
            .find(|(_, before, after)| before != after)?;
        Some(NotFlat {
            column,
            before: before?,
            after: after?,
            limit: 0,
        })
    }
}

/// A column that grew, or shrank where it must be equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFlat {
    /// The name of the column.
    pub column: &'static str,
    /// Its value after the warm-up.
    pub before: usize,
    /// Its value now.
    pub after: usize,
    /// By how much it may grow.
    pub limit: usize,
}

impl fmt::Display for NotFlat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} went from {} to {}, allowed: ",
            self.column, self.before, self.after
        )?;
        match self.limit {
            0 => f.write_str("no change"),
            limit => write!(f, "{limit} more"),
        }
    }
}

/// How many samples do not count. In them threads and tasks start that live as long as the process,
/// and buffers grow to their size.
pub(super) const WARM_UP: usize = 3;

/// A buffer that is kept (a queue, a shelf) grows to a new peak now and then and stays at it. On a
/// busy machine that may happen after the warm-up. All of these buffers together came to 45 KiB.
const MORE_BYTES: usize = 64 * 1024;
/// Each lasting pool keeps its last open error, which is made of one allocation or of three, and as
/// many mailboxes as it had waiters at once: it grew by five at most in 4 s. A leak of one
/// allocation per round comes to 33 or more in the shortest soak.
const MORE_ALLOCATIONS: usize = 16;

/// Compares the counts of the last sample with those of the first one after the warm-up.
pub(super) fn judge_last(samples: &[Sample]) -> Result<(), NotFlat> {
    let (Some(first), Some(last)) = (samples.get(WARM_UP), samples.last()) else {
        return Ok(());
    };
    last.counts.differs_from(&first.counts).map_or(Ok(()), Err)
}

/// Compares the heap of the last third with that of the first. It compares medians, so that one odd
/// sample decides nothing.
pub(super) fn judge_heap(samples: &[Sample]) -> Result<(), NotFlat> {
    let counted = samples.get(WARM_UP..).unwrap_or_default();
    let third = counted.len().div_ceil(3);
    let (first, last) = (&counted[..third], &counted[counted.len() - third..]);
    let grew = |column, read: fn(&Sample) -> usize, limit| {
        let (before, after) = (middle(first, read), middle(last, read));
        if after <= before + limit {
            return Ok(());
        }
        Err(NotFlat {
            column,
            before,
            after,
            limit,
        })
    };
    grew("heap bytes", |sample| sample.heap.bytes, MORE_BYTES)?;
    grew(
        "heap allocations",
        |sample| sample.heap.allocations,
        MORE_ALLOCATIONS,
    )
}

fn middle(samples: &[Sample], read: fn(&Sample) -> usize) -> usize {
    let mut values: Vec<_> = samples.iter().map(read).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}
