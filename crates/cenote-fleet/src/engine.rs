//! The engine: where the members of a group keep their cell.

use std::error::Error;
use std::future::{Future, pending};

use crate::cell::{Cell, Epoch, MemberId};
use crate::step::Counts;

/// Any error of an engine. The member tries again, until its lease is over.
pub type EngineError = Box<dyn Error + Send + Sync>;

/// Returns whether the server has as many connections as it or the user may have.
pub(crate) fn is_full(error: &EngineError) -> bool {
    #[cfg(feature = "postgres")]
    if let Some(error) = error.downcast_ref::<tokio_postgres::Error>() {
        let full = tokio_postgres::error::SqlState::TOO_MANY_CONNECTIONS;
        return error.code() == Some(&full);
    }
    #[cfg(feature = "mysql")]
    if let Some(mysql_async::Error::Server(error)) = error.downcast_ref() {
        // Of the server, of a user in the whole, and of this user.
        return [1040, 1203, 1226].contains(&error.code);
    }
    let _ = error;
    false
}

/// What [`Engine::read`] returns.
#[derive(Clone, Debug)]
pub struct Snapshot<V> {
    /// Names the engine's own history. It must change when writes may have been lost, as after a
    /// failover or a restore.
    pub origin: u64,
    /// What [`Engine::swap`] compares.
    pub version: V,
    /// The cell, if there is one.
    pub bytes: Option<Vec<u8>>,
}

impl<V> Snapshot<V> {
    /// Makes a snapshot of what is stored. An empty value is that of a group that is known to be
    /// new, so its first member need not learn. A missing value may have been lost.
    pub fn of(origin: u64, version: V, mut bytes: Option<Vec<u8>>) -> Self {
        if let Some(bytes) = bytes.as_mut().filter(|bytes| bytes.is_empty()) {
            let nonce = fastrand::u64(..);
            *bytes = Cell::new(Epoch { origin, nonce }).encode();
        }
        Self {
            origin,
            version,
            bytes,
        }
    }
}

/// Keeps one small value per group, for one member. It needs three verbs: read, compare-and-set,
/// and nudge. An engine that is the server of the pooled connections can also count and end its
/// sessions, which makes the budget hard for processes that were stopped or cut off.
///
/// An engine connects by itself, and again after an error. Each call has a time limit, after which
/// its future is dropped. A swap whose future was dropped may still take effect.
pub trait Engine: Send + 'static {
    /// What tells one value from the next.
    type Version: Send + Sync;

    /// Connects, unless it is connected. It is called before each read, and other calls fail if the
    /// connection is lost.
    fn connect(&mut self) -> impl Future<Output = Result<(), EngineError>> + Send {
        async { Ok(()) }
    }

    /// Reads the cell. The read must see every swap that had succeeded when it began.
    fn read(&mut self)
    -> impl Future<Output = Result<Snapshot<Self::Version>, EngineError>> + Send;

    /// Writes a cell if none was written since `version` was read. Returns whether it did.
    fn swap(
        &mut self,
        version: &Self::Version,
        bytes: &[u8],
    ) -> impl Future<Output = Result<bool, EngineError>> + Send;

    /// Tells the other members to look at the cell. A nudge may be lost.
    fn nudge(&mut self) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Waits for a nudge, or until the connection is lost. By default no nudge comes, and members
    /// look only when they renew.
    ///
    /// # Cancel safety
    /// Dropping the future loses no nudge that comes later.
    fn nudged(&mut self) -> impl Future<Output = ()> + Send {
        pending()
    }

    /// Returns how many sessions the engine itself has at the server of the pooled connections.
    ///
    /// If there are any, and [`count`](Engine::count) includes them, a member without sessions is
    /// dead or has lost its engine. The others take its share within a second. So such an engine
    /// implements [`is_connected`](Engine::is_connected), and connects only in
    /// [`connect`](Engine::connect): the member must not miss that a session was lost.
    fn sessions(&self) -> u32 {
        0
    }

    /// Returns whether the session of the engine goes on. While it does not, the pool opens
    /// nothing.
    fn is_connected(&self) -> bool {
        true
    }

    /// Counts the sessions of the group at the server, by member. By default they cannot be
    /// counted, which is `None`.
    fn count(&mut self) -> impl Future<Output = Result<Option<Counts>, EngineError>> + Send {
        async { Ok(None) }
    }

    /// Ends all sessions of a member at the server. It is called only where sessions are counted.
    fn fence(&mut self, member: MemberId) -> impl Future<Output = Result<(), EngineError>> + Send {
        let _ = member;
        async { Ok(()) }
    }

    /// From now on the engine is that of an [`Onlooker`](crate::Onlooker): it makes no table or
    /// bucket, and no member counts its sessions. It is called before all others.
    fn only_look(&mut self) {}

    /// Lists the groups that have a value. By default there is no list, which is `None`.
    fn groups(&mut self) -> impl Future<Output = Result<Option<Vec<String>>, EngineError>> + Send {
        async { Ok(None) }
    }
}
