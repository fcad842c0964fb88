//! What is measured when everything is quiet, and when it counts as flat.

use std::fmt;
use std::fs;
use std::time::Duration;

/// What the counting allocator of the program says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heap {
    /// Bytes that live.
    pub bytes: usize,
    /// Allocations that live.
    pub allocations: usize,
}

/// One quiet moment: nobody works, and the pools are empty.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// How long the soak has run.
    pub at: Duration,
    /// How long it will, if nothing is held up.
    pub left: Duration,
    /// Leases handed out so far.
    pub acquired: u64,
    /// What lives on the heap.
    pub heap: Heap,
    /// What must be the same in every sample.
    pub counts: Counts,
}

/// Things that are there or not: one more is a leak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Tasks of the runtime.
    pub tasks: usize,
    /// Open file descriptors, where the system tells.
    pub fds: Option<usize>,
    /// Threads of this process, where the system tells.
    pub threads: Option<usize>,
    /// Resources that were opened and are not closed.
    pub resources: usize,
}

impl Counts {
    /// Files and threads are counted here; the others by who knows them.
    pub(super) fn take(tasks: usize, resources: usize) -> Self {
        let entries = |folder| fs::read_dir(folder).ok().map(Iterator::count);
        Self {
            tasks,
            fds: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
            resources,
        }
    }

    /// The first column in which they differ.
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
    /// Which one.
    pub column: &'static str,
    /// What it was after the warm-up.
    pub before: usize,
    /// What it is now.
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

/// Samples that do not count: threads and tasks that live as long as the process start, and buffers find their size.
pub(super) const WARM_UP: usize = 3;

/// A buffer that is kept (a queue, a shelf) grows to a new peak now and then, and stays so. All of them together came to 45 KiB, and on a
/// machine with little time to give they are not there when the warm-up ends.
const MORE_BYTES: usize = 64 * 1024;
/// Each lasting pool keeps its last open error, which is made of one allocation or of three. A leak of one a round is more than this
/// in the shortest soak.
const MORE_ALLOCATIONS: usize = 8;

/// Is the last one as the first one after the warm-up, where it must be?
pub(super) fn judge_last(samples: &[Sample]) -> Result<(), NotFlat> {
    let (Some(first), Some(last)) = (samples.get(WARM_UP), samples.last()) else {
        return Ok(());
    };
    last.counts.differs_from(&first.counts).map_or(Ok(()), Err)
}

/// Has the heap grown? The middle of the last third is compared with that of the first, so that one odd moment decides nothing.
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
