//! One statement of a text, read token by token.

use crate::dirt::Dirt;
use crate::lexer::{Kind, Language, Lexer, Token};
use crate::meaning::{self, Pragma, Verb};
use crate::name::Name;
use crate::reading::{Access, Effect, Reading};

/// How many words after `CREATE` can stand before `TEMPORARY`: `OR REPLACE LOCAL`.
const BEFORE_TEMPORARY: usize = 5;

pub(crate) struct Statement {
    language: Language,
    /// Known after the first word.
    verb: Option<Verb>,
    /// The number of words so far.
    words: usize,
    /// The last word or name.
    last: Name,
    /// The last token, if it was a symbol.
    symbol: u8,
    /// How many parentheses are open.
    depth: usize,
    /// How many blocks are open in the body of a routine.
    body: usize,
    seen: Seen,
    /// What functions and variables in it leave behind.
    dirt: Dirt,
    /// The name of a pragma that has an argument, and the argument.
    pragma: Option<(Name, Name)>,
}

/// The words that matter, wherever they stand in a statement.
#[derive(Default)]
struct Seen {
    from: bool,
    into: bool,
    returning: bool,
    comma: bool,
    /// A function or a part of the statement that writes.
    writes: bool,
    locks_rows: bool,
    analyze: bool,
    temporary: bool,
    /// The body of a routine may follow.
    routine: bool,
    variable: bool,
    autocommit: bool,
    /// The kind of thing that `CREATE` creates.
    object: bool,
    /// A change that a function makes for the statements after it.
    lasting: bool,
    /// The word after the verb that the verb asks about.
    asked: bool,
    /// A word that makes the verb harmless.
    spared: bool,
}

impl Statement {
    pub(crate) fn new(language: Language) -> Self {
        Self {
            language,
            verb: None,
            words: 0,
            last: Name::default(),
            symbol: 0,
            depth: 0,
            body: 0,
            seen: Seen::default(),
            dirt: Dirt::NONE,
            pragma: None,
        }
    }

    /// Returns whether a semicolon belongs to the body of a routine.
    pub(crate) fn is_in_body(&self) -> bool {
        self.body > 0
    }

    /// Takes the next token. `rest` are the tokens after it.
    pub(crate) fn see(&mut self, token: Token<'_>, rest: &Lexer<'_>) {
        match token.kind {
            Kind::Symbol(symbol) => self.see_symbol(symbol),
            Kind::Word | Kind::Quoted => {
                let name = token.name();
                self.see_name(&name, token.kind == Kind::Word, rest);
                self.last = name;
                self.symbol = 0;
            }
            Kind::Text | Kind::Number => {
                if self.verb == Some(Verb::Pragma) && self.pragma.is_some() {
                    self.pragma = self.pragma.map(|(name, _)| (name, argument(token)));
                }
                self.symbol = 0;
            }
        }
    }

    fn see_symbol(&mut self, symbol: u8) {
        match symbol {
            b'(' => self.depth += 1,
            b')' => self.depth = self.depth.saturating_sub(1),
            b',' => self.seen.comma |= self.depth == 0,
            b'@' if self.language == Language::MySql => {
                self.seen.variable = true;
                if self.symbol == 0 && &*self.last == "into" {
                    self.leave(Dirt::STATE);
                }
            }
            b'=' if self.language == Language::MySql && self.symbol == b':' => {
                self.leave(Dirt::STATE);
            }
            _ => {}
        }
        let pragma = self.verb == Some(Verb::Pragma) && self.pragma.is_none();
        if pragma && matches!(symbol, b'=' | b'(') {
            self.pragma = Some((self.last, Name::default()));
        }
        self.symbol = symbol;
    }

    fn see_name(&mut self, name: &Name, keyword: bool, rest: &Lexer<'_>) {
        self.words += 1;
        let Some(verb) = self.verb else {
            self.verb = Some(match keyword {
                true => Verb::of(self.language, name),
                false => Verb::Other,
            });
            return;
        };
        if let Some((pragma, _)) = self.pragma {
            self.pragma = Some((pragma, *name));
        }
        let next = rest.clone().next();
        if keyword && self.see_block(name, next) {
            return;
        }
        if keyword {
            self.see_keyword(verb, name, next);
        }
        let called = next.is_some_and(|next| next.is(b'('));
        if called && !matches!(&*self.last, "into" | "table" | "exists" | "references") {
            self.see_call(name, rest);
        }
        match &**name {
            "pg_temp" if self.language == Language::Postgres => self.dirt |= Dirt::STATE,
            "pg_settings" if verb == Verb::Update => self.dirt |= Dirt::STATE,
            // A schema of SQLite has this name.
            "temp" if next.is_some_and(|next| next.is(b'.')) => self.see_temp(verb),
            _ => {}
        }
    }

    /// Takes the schema of temporary tables. Elsewhere in a statement the name is an alias.
    fn see_temp(&mut self, verb: Verb) {
        let objects = ["table", "view", "trigger", "index", "exists", "into"];
        let named = self.words <= 4 || objects.contains(&&*self.last);
        if self.language == Language::Sqlite && named {
            self.seen.temporary |= verb == Verb::Create;
            if verb == Verb::Other {
                self.dirt |= Dirt::STATE;
            }
        }
    }

    /// Records that a part of the statement changes the session.
    fn leave(&mut self, dirt: Dirt) {
        self.dirt |= dirt;
        self.seen.writes = true;
        self.seen.lasting |= dirt != Dirt::CODE && dirt != Dirt::NONE;
    }

    /// Counts the blocks in the body of a routine. Returns whether the word belongs to a body.
    fn see_block(&mut self, name: &Name, next: Option<Token<'_>>) -> bool {
        if !self.seen.routine {
            return false;
        }
        let next = next.map(|next| next.name()).unwrap_or_default();
        let begins = match self.language {
            Language::Postgres => &*next == "atomic",
            Language::MySql => true,
            Language::Sqlite => self.body == 0,
        };
        match &**name {
            "begin" if begins => self.body += 1,
            "case" if self.body > 0 && &*self.last != "end" => self.body += 1,
            "end" if matches!(&*next, "if" | "loop" | "while" | "repeat" | "for") => {}
            "end" => self.body = self.body.saturating_sub(1),
            _ => {}
        }
        true
    }

    fn see_call(&mut self, name: &Name, rest: &Lexer<'_>) {
        if let Some(dirt) = meaning::function(self.language, name) {
            self.leave(dirt);
        }
        // With an argument it sets what it returns without one.
        if self.language == Language::MySql && &**name == "last_insert_id" {
            let empty = rest.clone().nth(1).is_some_and(|token| token.is(b')'));
            if !empty {
                self.leave(Dirt::LOCKS);
            }
        }
    }

    fn see_keyword(&mut self, verb: Verb, name: &Name, next: Option<Token<'_>>) {
        let second = self.words == 2;
        let called = next.is_some_and(|next| next.is(b'('));
        let followed_by = |words: &[&str]| next.is_some_and(|next| words.contains(&&*next.name()));
        match (verb, &**name) {
            (_, "from") => self.seen.from = true,
            (_, "into") => self.seen.into = true,
            (_, "returning") => self.seen.returning = true,
            (Verb::Explain, "analyze" | "analyse") => self.seen.analyze = true,
            (Verb::Explain, "pragma") => self.dirt |= Dirt::STATE,
            (Verb::Set, "for") if self.seen.asked => {
                self.verb = None;
                self.seen = Seen::default();
            }
            (_, "for") => self.seen.locks_rows |= followed_by(&["update", "share", "no", "key"]),
            // `NEXT VALUE FOR` a sequence.
            (_, "value") if &*self.last == "next" => self.seen.writes = true,
            // The name before it has escapes that are not read here.
            (_, "uescape") => self.dirt |= Dirt::CODE,
            (_, "temp" | "temporary") => {
                let create = matches!(verb, Verb::Create | Verb::Ddl);
                let create = create && self.words <= BEFORE_TEMPORARY;
                let select = matches!(verb, Verb::Select | Verb::With);
                self.seen.temporary |= create || select && &*self.last == "into";
            }
            (Verb::With, "insert" | "update" | "delete" | "merge" | "replace") if !called => {
                // In SQLite only the statement itself can write.
                self.seen.writes |= self.depth == 0 || self.language != Language::Sqlite;
            }
            (Verb::Create, "trigger" | "function" | "procedure" | "event" | "package") => {
                self.seen.routine |= !self.seen.object;
                self.seen.object = true;
            }
            (Verb::Create, "table" | "view" | "index" | "schema" | "database" | "sequence") => {
                self.seen.object = true;
            }
            (Verb::Begin, "atomic") | (Verb::Lock, "instance") => self.seen.asked = true,
            (Verb::Start | Verb::Prepare, "transaction") => self.seen.asked |= second,
            // These do not end the transaction: `ROLLBACK TO`, `COMMIT PREPARED`, `AND CHAIN`.
            (Verb::End, "to" | "prepared") => self.seen.spared = true,
            (Verb::End, "chain") => self.seen.asked = &*self.last != "no",
            (Verb::Xa, "start" | "begin") => self.seen.asked |= second,
            (Verb::Set, "statement") => self.seen.asked |= second,
            (Verb::Set, "autocommit") => self.seen.autocommit = true,
            (Verb::Set, "global" | "persist" | "persist_only" | "password" | "default") => {
                self.seen.spared |= second && self.language == Language::MySql;
            }
            (Verb::Flush, "lock" | "export") => self.seen.asked = true,
            (Verb::Backup, "unlock" | "end") => self.seen.spared = true,
            _ => {}
        }
    }

    /// Returns what the statement says, or `None` if there is none.
    pub(crate) fn reading(&self) -> Option<Reading> {
        let verb = self.verb?;
        let seen = &self.seen;
        let mysql = self.language == Language::MySql;
        let transaction = Dirt::TRANSACTION;
        let changes = |dirt| (dirt, Effect::Keeps, false, true);
        let may = |dirt: Dirt| (dirt, Effect::Keeps, dirt.has(transaction), false);
        let (dirt, effect, doubtful, only_changes) = match verb {
            Verb::Begin if mysql && seen.asked => may(Dirt::ANY),
            Verb::Begin => (transaction, Effect::Opens, false, false),
            Verb::Start if seen.asked => (transaction, Effect::Opens, false, false),
            // Outside a transaction, `AND CHAIN` may begin one.
            Verb::End if seen.asked => (transaction, Effect::Keeps, mysql, false),
            Verb::End if seen.spared => (transaction, Effect::Keeps, false, false),
            Verb::End => (transaction, Effect::Ends, false, false),
            Verb::Savepoint if self.language == Language::Sqlite => {
                (transaction, Effect::Opens, false, false)
            }
            Verb::Release if self.language == Language::Sqlite => may(transaction),
            Verb::Savepoint | Verb::Release => (transaction, Effect::Keeps, false, false),
            Verb::Xa => (Dirt::STATE | transaction, Effect::Keeps, true, seen.asked),
            Verb::Set if seen.spared && !seen.comma => may(Dirt::NONE),
            Verb::Set if seen.autocommit => (Dirt::STATE | transaction, Effect::Keeps, true, true),
            Verb::Set => changes(Dirt::STATE),
            Verb::Change(dirt) => changes(dirt),
            Verb::May(dirt) => may(dirt),
            Verb::Prepare if seen.asked => (transaction, Effect::Ends, false, false),
            Verb::Prepare if mysql => changes(Dirt::PREPARED),
            Verb::Prepare => changes(Dirt::PREPARED | Dirt::STATE),
            Verb::Create if seen.temporary => changes(Dirt::STATE),
            // The end of its body is a guess.
            Verb::Create if mysql && seen.routine => may(transaction),
            Verb::Lock if seen.asked => changes(Dirt::STATE),
            Verb::Lock => (Dirt::LOCKS | transaction, Effect::Keeps, true, true),
            Verb::Flush if seen.asked => (Dirt::LOCKS | transaction, Effect::Keeps, true, true),
            Verb::Backup => (Dirt::STATE, Effect::Keeps, false, !seen.spared),
            Verb::Variables if seen.variable => may(Dirt::STATE),
            Verb::Pragma if self.pragma() == Pragma::ChangesTheSession => changes(Dirt::STATE),
            Verb::Create | Verb::Ddl | Verb::Start | Verb::Flush => {
                (Dirt::NONE, Effect::Keeps, mysql, false)
            }
            // A change by a function is for the statements after it, if the statement does no more.
            Verb::Select if seen.temporary => changes(Dirt::STATE),
            Verb::Select => (Dirt::NONE, Effect::Keeps, false, seen.lasting && !seen.from),
            Verb::With if seen.temporary => may(Dirt::STATE),
            Verb::With
            | Verb::Explain
            | Verb::Update
            | Verb::Pragma
            | Verb::Variables
            | Verb::Other => may(Dirt::NONE),
        };
        Some(Reading {
            dirt: dirt | self.dirt,
            effect,
            doubtful,
            ends_open: self.ends_open(verb),
            access: self.access(verb),
            only_changes,
            returns: seen.returning || matches!(verb, Verb::Select | Verb::With),
            statements: 1,
        })
    }

    fn ends_open(&self, verb: Verb) -> bool {
        let seen = &self.seen;
        // MySQL commits before all these.
        let by_itself = self.language == Language::MySql && !seen.temporary;
        match verb {
            Verb::End => !seen.spared,
            Verb::Prepare => seen.asked,
            Verb::Set => seen.autocommit,
            Verb::Lock => by_itself && !seen.asked,
            Verb::Begin | Verb::Start | Verb::Create | Verb::Ddl | Verb::Flush => by_itself,
            _ => false,
        }
    }

    fn access(&self, verb: Verb) -> Access {
        let seen = &self.seen;
        match verb {
            Verb::Select | Verb::With if seen.writes || seen.into => match self.language {
                // A function does not write to the file.
                Language::Sqlite if verb == Verb::Select => Access::Reads,
                _ => Access::Writes,
            },
            Verb::Select | Verb::With if seen.locks_rows => Access::Reads,
            Verb::Select | Verb::With => Access::ReadsAgain,
            Verb::Explain if seen.analyze && self.language != Language::Sqlite => Access::Writes,
            Verb::Explain => Access::ReadsAgain,
            Verb::Pragma if self.pragma() == Pragma::Reads => Access::ReadsAgain,
            _ => Access::Writes,
        }
    }

    fn pragma(&self) -> Pragma {
        match &self.pragma {
            Some((name, value)) => Pragma::of(name, Some(value)),
            None => Pragma::of(&self.last, None),
        }
    }
}

/// Returns the value of a pragma: a word, or a string with one word.
fn argument(token: Token<'_>) -> Name {
    Name::plain(token.span.trim_matches('\''))
}
