//! The sessions of a group at the server, and those without a tag.

use std::collections::BTreeMap;
use std::time::Duration;

use mysql_async::prelude::Queryable;

use super::line::Turn;
use crate::cell::MemberId;
use crate::clock::Clock;
use crate::engine::EngineError;
use crate::step::Counts;

/// Forgets sessions that have ended. The statement locks the table before it reads the process
/// list, so that no session can come between the two.
pub(super) const TIDY: &str = "DELETE FROM cenote_fleet_session WHERE name = ? \
     AND id NOT IN (SELECT id FROM information_schema.processlist)";

const SESSIONS: &str = "SELECT p.id, s.member FROM information_schema.processlist AS p \
     LEFT JOIN cenote_fleet_session AS s ON s.id = p.id \
     WHERE p.user = ? AND (s.name IS NULL OR s.name = ?)";

/// "unknown thread id"
const IS_GONE: u16 = 1094;

/// A session needs one round trip to write its tag. One without a tag for this long is a stray:
/// that of a stopped process, or of another program.
const GRACE: Duration = Duration::from_secs(1);

/// A session that ends leaves a row of a hundred bytes. Rows are removed after so many counts.
pub(super) const TIDY_AFTER: u32 = 100;

/// Has the sessions without a tag in a count. No member has this name.
const NO_MEMBER: MemberId = MemberId(0);

/// The statement by which a session writes its tag. The name of a group has no quotes.
pub(super) fn tag(group: &str, id: MemberId) -> String {
    let MemberId(member) = id;
    format!("REPLACE INTO cenote_fleet_session VALUES (CONNECTION_ID(), '{group}', {member})")
}

impl Turn {
    /// Lists the sessions of the group, with the members that they have written.
    pub(super) async fn sessions(
        &mut self,
        group: &str,
    ) -> Result<Vec<(u64, Option<u64>)>, EngineError> {
        let user = self.user().to_owned();
        Ok(self.conn.exec(SESSIONS, (user, group)).await?)
    }

    pub(super) async fn end(&mut self, id: u64) -> Result<(), EngineError> {
        match self.conn.query_drop(format!("KILL {id}")).await {
            Err(mysql_async::Error::Server(error)) if error.code == IS_GONE => Ok(()),
            ended => Ok(ended?),
        }
    }
}

/// The sessions without a tag, and when they were first seen.
pub(super) struct Untagged {
    clock: Clock,
    since: BTreeMap<u64, Duration>,
}

impl Untagged {
    pub(super) fn new() -> Self {
        Self {
            clock: Clock::new(),
            since: BTreeMap::new(),
        }
    }

    /// Counts sessions by member, and those without a tag if they are there for long enough.
    pub(super) fn count(&mut self, sessions: &[(u64, Option<u64>)]) -> Counts {
        let now = self.clock.now();
        let mut counts = Counts::new();
        let mut since = BTreeMap::new();
        for (id, member) in sessions {
            let member = match member {
                Some(member) => MemberId(*member),
                None => {
                    let seen = self.since.get(id).copied().unwrap_or(now);
                    since.insert(*id, seen);
                    if now - seen < GRACE {
                        continue;
                    }
                    NO_MEMBER
                }
            };
            *counts.entry(member).or_insert(0) += 1;
        }
        self.since = since;
        counts
    }
}
