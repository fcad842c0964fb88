//! How many connections a server allows.

/// The places that a server has for connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// All of them.
    pub(crate) all: u64,
    /// Those that ordinary users do not get.
    pub(crate) reserved: u64,
    /// Those that connections of others have now.
    pub(crate) others: u64,
}

impl Places {
    /// Returns how many connections each of several instances may have.
    pub(crate) fn for_each(self, instances: u32) -> u64 {
        self.left() / u64::from(instances.max(1))
    }

    pub(crate) fn left(self) -> u64 {
        self.all
            .saturating_sub(self.reserved)
            .saturating_sub(self.others)
    }
}

#[cfg(test)]
mod tests;
