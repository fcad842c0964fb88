//! What a command or a pipeline needs, and what it leaves behind on its connection.

use redis::{Cmd, Pipeline};

use crate::table::{Kind, name};

/// What was left behind on a connection and must be undone before its next use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dirt(u8);

impl Dirt {
    pub(crate) const NONE: Self = Self(0);
    const WATCHED: Self = Self(1);
    const MULTI: Self = Self(2);
    const DATABASE: Self = Self(4);
    const SESSION: Self = Self(8);

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns what is there after a command that has succeeded. `home` is the database of the URL.
    fn after(self, kind: Kind, home: i64) -> Self {
        match kind {
            Kind::Watch => self.and(Self::WATCHED),
            Kind::Multi => self.and(Self::MULTI),
            // In a transaction `UNWATCH` is queued, and does nothing in the end.
            Kind::Unwatch if !self.has(Self::MULTI) => self.without(Self::WATCHED),
            Kind::Exec | Kind::Discard => self.without(Self::WATCHED).without(Self::MULTI),
            Kind::Select(to) if to == Some(home) => self.without(Self::DATABASE),
            Kind::Select(_) => self.and(Self::DATABASE),
            Kind::Session | Kind::Subscribe(_) => self.and(Self::SESSION),
            Kind::Plain | Kind::Blocks | Kind::Waits | Kind::Unwatch | Kind::Unfit(_) => self,
        }
    }
}

/// Where a command may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// On any connection, beside commands of others.
    Lane,
    /// On a connection of its own, for this one call.
    Lease,
    /// On a connection that stays with the caller for more than this call.
    Stay,
    /// On no connection of this kind. The text says what to do instead.
    Nowhere(String),
}

/// A command or a pipeline that was read.
#[derive(Debug)]
pub(crate) struct Reading {
    kinds: Vec<Kind>,
    /// Whether `MULTI` and `EXEC` are around the commands.
    atomic: bool,
    home: i64,
    /// The first command that is not plain, or the first one.
    pub(crate) name: String,
}

impl Reading {
    /// Returns `None` for a plain command, of which there is nothing to know.
    pub(crate) fn of_command(command: &Cmd, home: i64) -> Option<Self> {
        let kind = Kind::of(command);
        (kind != Kind::Plain).then(|| Self {
            kinds: vec![kind],
            atomic: false,
            home,
            name: name(command),
        })
    }

    /// Returns `None` for a pipeline of plain commands that is not atomic.
    pub(crate) fn of_pipeline(pipeline: &Pipeline, home: i64) -> Option<Self> {
        let atomic = pipeline.is_transaction();
        let first = pipeline
            .cmd_iter()
            .find(|command| Kind::of(command) != Kind::Plain);
        if first.is_none() && !atomic {
            return None;
        }
        Some(Self {
            kinds: pipeline.cmd_iter().map(Kind::of).collect(),
            atomic,
            home,
            name: first.map_or_else(|| "MULTI".to_owned(), name),
        })
    }

    /// Returns whether it may take as long as it likes.
    pub(crate) fn blocks(&self) -> bool {
        // Nothing blocks in a transaction.
        let blocks = |kind: &Kind| matches!(kind, Kind::Blocks | Kind::Waits);
        !self.atomic && self.kinds.iter().any(blocks)
    }

    /// Returns what may be there while the answer is outstanding, or after an error.
    pub(crate) fn dirt_at_worst(&self, before: Dirt) -> Dirt {
        let after = |dirt: Dirt, kind: &Kind| dirt.and(dirt.after(*kind, self.home));
        let own = if self.atomic { Dirt::MULTI } else { Dirt::NONE };
        self.kinds.iter().fold(before.and(own), after)
    }

    /// Returns what is there after all commands have succeeded.
    pub(crate) fn dirt_after(&self, before: Dirt) -> Dirt {
        let after = |dirt: Dirt, kind: &Kind| dirt.after(*kind, self.home);
        let all = self.kinds.iter().fold(before, after);
        if self.atomic {
            all.after(Kind::Exec, self.home)
        } else {
            all
        }
    }

    /// Returns whether it only gives something up.
    pub(crate) fn gives_up(&self) -> bool {
        let gives_up = |kind: &Kind| matches!(kind, Kind::Unwatch | Kind::Discard);
        self.kinds.iter().all(gives_up)
    }

    /// Returns where it may run for a caller that has no connection.
    pub(crate) fn route(&self) -> Route {
        let name = &self.name;
        for kind in &self.kinds {
            match kind {
                Kind::Unfit(fix) => {
                    return Route::Nowhere(format!(
                        "`{name}` cannot run on a pooled connection: {fix}"
                    ));
                }
                Kind::Subscribe(_) => {
                    return Route::Nowhere(format!(
                        "`{name}` needs a lease: acquire one and read `Lease::messages`"
                    ));
                }
                _ => {}
            }
        }
        let waits = self.kinds.contains(&Kind::Waits);
        if self.dirt_after(Dirt::NONE) != Dirt::NONE || waits && !self.atomic {
            return Route::Stay;
        }
        let changes = self.dirt_at_worst(Dirt::NONE) != Dirt::NONE && !self.atomic;
        if changes || self.blocks() {
            return Route::Lease;
        }
        Route::Lane
    }

    /// Returns why a session cannot run it, if so.
    pub(crate) fn refusal(&self, has_messages: bool) -> Option<String> {
        let name = &self.name;
        self.kinds.iter().find_map(|kind| match kind {
            Kind::Unfit(fix) => Some(format!("`{name}` cannot run on a pooled connection: {fix}")),
            Kind::Subscribe(_) if !has_messages => Some(format!(
                "`{name}` needs RESP3: add `?protocol=resp3` to the URL"
            )),
            // Each channel has an answer, and the driver expects one per command.
            Kind::Subscribe(1) if self.kinds.len() == 1 => None,
            Kind::Subscribe(_) => Some(format!("`{name}` takes one channel per command here")),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests;
