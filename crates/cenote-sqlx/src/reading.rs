//! The reading of a text: what its statements do to the session, to the transaction and to data.

use crate::dirt::Dirt;
use crate::lexer::{Language, Lexer};
use crate::statement::Statement;

/// What a text does to the transaction of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Keeps,
    Opens,
    Ends,
}

/// How a text uses data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    /// It may write.
    Writes,
    /// It needs no right to write.
    Reads,
    /// It reads, and a second run does no harm.
    ReadsAgain,
}

/// What the text of a query says, as far as its text shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) dirt: Dirt,
    pub(crate) effect: Effect,
    /// Whether only the server knows the effect on the transaction.
    pub(crate) doubtful: bool,
    /// Whether it ends the transaction that was open before it.
    pub(crate) ends_open: bool,
    pub(crate) access: Access,
    /// Whether all that the text does is a change of the session.
    pub(crate) only_changes: bool,
    /// Whether it may return rows.
    pub(crate) returns: bool,
    /// The number of statements, up to two.
    pub(crate) statements: u8,
}

impl Reading {
    const EMPTY: Self = Self {
        dirt: Dirt::NONE,
        effect: Effect::Keeps,
        doubtful: false,
        ends_open: false,
        access: Access::ReadsAgain,
        only_changes: true,
        returns: false,
        statements: 0,
    };

    /// Reads `sql`. [`Known`](crate::known) remembers the result.
    pub(crate) fn new(language: Language, sql: &str) -> Self {
        let (reading, conditional) = Self::of(Lexer::new(language, sql), language);
        if !conditional {
            return reading;
        }
        // Whether the comment is executed depends on the server's version.
        let skipping = Lexer::without_conditional(language, sql);
        reading.or(Self::of(skipping, language).0)
    }

    fn of(mut tokens: Lexer<'_>, language: Language) -> (Self, bool) {
        let mut reading = Self::EMPTY;
        let mut statement = Statement::new(language);
        while let Some(token) = tokens.next() {
            if token.is(b';') && !statement.is_in_body() {
                reading = reading.then(&statement);
                statement = Statement::new(language);
            } else {
                statement.see(token, &tokens);
            }
        }
        (reading.then(&statement).completed(), tokens.conditional)
    }

    fn then(mut self, statement: &Statement) -> Self {
        let Some(next) = statement.reading() else {
            return self;
        };
        self.dirt |= next.dirt;
        if next.effect != Effect::Keeps {
            self.effect = next.effect;
        }
        self.doubtful |= next.doubtful;
        self.ends_open |= next.ends_open;
        self.access = self.access.min(next.access);
        self.only_changes &= next.only_changes;
        self.returns |= next.returns;
        self.statements = (self.statements + 1).min(2);
        self
    }

    fn completed(self) -> Self {
        Self {
            only_changes: self.only_changes && self.statements > 0,
            ..self
        }
    }

    /// Returns what holds if either reading may be right.
    fn or(self, other: Self) -> Self {
        Self {
            dirt: self.dirt | other.dirt,
            effect: self.effect,
            doubtful: self.doubtful || other.doubtful || self.effect != other.effect,
            ends_open: self.ends_open || other.ends_open,
            access: self.access.min(other.access),
            only_changes: self.only_changes && other.only_changes,
            returns: self.returns || other.returns,
            statements: self.statements.max(other.statements),
        }
    }

    /// Returns whether a transaction is open after the text succeeded, if one was `open` before.
    pub(crate) fn leaves_open(&self, open: bool) -> bool {
        match self.effect {
            Effect::Keeps => open,
            Effect::Opens => true,
            Effect::Ends => false,
        }
    }

    /// Returns whether the text does nothing but what is undone when its connection goes back.
    pub(crate) fn is_undone(&self) -> bool {
        self.begins_for_good() || self.only_changes
    }

    /// Returns whether the text surely leaves a transaction open.
    pub(crate) fn begins_for_good(&self) -> bool {
        self.effect == Effect::Opens && !self.doubtful
    }
}

#[cfg(test)]
mod tests;
