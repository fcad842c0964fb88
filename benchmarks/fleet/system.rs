//! The systems that divide the sessions of one server among six processes.

/// The sessions that all processes may have, together.
pub(crate) const CAPACITY: u32 = 40;

/// The processes of one play.
pub(crate) const PROCESSES: usize = 6;

/// How a process gets its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    /// `sqlx::Pool` with an equal share for each process.
    SqlxShare,
    /// deadpool-postgres with an equal share for each process.
    DeadpoolShare,
    /// `sqlx::Pool` that may have the whole capacity, in each process.
    SqlxAll,
    /// deadpool-postgres that may have the whole capacity, in each process.
    DeadpoolAll,
    /// The same on a server that refuses no session.
    DeadpoolNoLimit,
    /// PgBouncer in front of the server, and deadpool-postgres in each process.
    PgBouncer,
    /// cenote-postgres in a fleet that keeps its cell in the same server.
    Cenote,
}

impl System {
    /// In the order of the table.
    pub(crate) const ALL: [Self; 7] = [
        Self::SqlxShare,
        Self::DeadpoolShare,
        Self::SqlxAll,
        Self::DeadpoolAll,
        Self::DeadpoolNoLimit,
        Self::PgBouncer,
        Self::Cenote,
    ];

    pub(crate) fn name(self) -> String {
        match self {
            Self::SqlxShare => format!("sqlx, {CAPACITY} / {PROCESSES} each"),
            Self::DeadpoolShare => format!("deadpool, {CAPACITY} / {PROCESSES} each"),
            Self::SqlxAll => format!("sqlx, {CAPACITY} each"),
            Self::DeadpoolAll => format!("deadpool, {CAPACITY} each"),
            Self::DeadpoolNoLimit => format!("deadpool, {CAPACITY} each, no limit"),
            Self::PgBouncer => format!("PgBouncer, {CAPACITY}"),
            Self::Cenote => format!("cenote fleet, {CAPACITY}"),
        }
    }

    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|system| system.name() == name)
    }

    /// Returns whether the server itself refuses sessions beyond the capacity.
    pub(crate) fn has_limit(self) -> bool {
        self != Self::DeadpoolNoLimit
    }

    /// Returns whether the share of a process never changes.
    pub(crate) fn is_fixed(self) -> bool {
        matches!(self, Self::SqlxShare | Self::DeadpoolShare)
    }

    /// Returns the most connections of the pool in this process. A fleet sets it by itself.
    pub(crate) fn max_size(self, process: usize) -> u32 {
        let (processes, process) = (PROCESSES as u32, process as u32);
        match self.is_fixed() {
            true => CAPACITY / processes + u32::from(process < CAPACITY % processes),
            false => CAPACITY,
        }
    }
}
