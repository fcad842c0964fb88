//! What a statement may leave behind in its session.

use std::ops::{BitOr, BitOrAssign};

/// What may have to be undone before a session is lent again.
///
/// ```
/// use cenote_sqlx::Dirt;
///
/// let mut dirt = Dirt::STATE | Dirt::LOCKS;
/// assert!(dirt.has(Dirt::LOCKS) && !dirt.has(Dirt::TRANSACTION));
/// dirt |= Dirt::TRANSACTION | Dirt::PREPARED;
/// assert_eq!(dirt, Dirt::ANY);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dirt(u8);

impl Dirt {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// A transaction may be open. The server is asked before the session is lent again.
    pub const TRANSACTION: Self = Self(1);
    /// Session state: settings, temporary tables, variables, cursors, subscriptions, another
    /// schema.
    pub const STATE: Self = Self(2);
    /// Locks that belong to the session, and on MySQL a last insert id that the text set.
    pub const LOCKS: Self = Self(4);
    /// Statements that `PREPARE` made.
    pub const PREPARED: Self = Self(8);
    /// All of them. The connection was used outside of this crate.
    pub const ANY: Self = Self(15);

    /// What a function that runs the text of a query may leave.
    pub(crate) const CODE: Self = Self(Self::STATE.0 | Self::LOCKS.0);

    /// All but a transaction.
    pub(crate) const SESSION: Self = Self(Self::ANY.0 & !Self::TRANSACTION.0);

    /// Returns whether it has any part of `other`.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Dirt {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Dirt {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}
