//! The commands that are more than a question and its answer. All commands that are not on this
//! table are stateless.

use redis::{Arg, Cmd};

/// What a command does to its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing.
    Plain,
    /// It may keep the connection busy until something happens.
    Blocks,
    /// As `Blocks`, and it is about the commands that the same connection has sent before.
    Waits,
    Watch,
    Unwatch,
    Multi,
    Exec,
    Discard,
    /// It changes the database to this one. `None`: its number cannot be read.
    Select(Option<i64>),
    /// It changes the session in a way that only `RESET` undoes.
    Session,
    /// It gets messages later. With the number of its channels.
    Subscribe(usize),
    /// Its answers are not one per question, so that no pooled connection can run it.
    Unfit(&'static str),
}

const MONITOR: &str = "use `redis::Client::get_async_monitor`";
const REPLICA: &str = "open a connection for it that is not pooled";
const QUIT: &str = "drop or discard the lease instead";

/// The longest name on the table.
const LONGEST: usize = 12;

impl Kind {
    pub(crate) fn of(command: &Cmd) -> Self {
        let mut args = words(command);
        let name = args.next().unwrap_or_default();
        let mut upper = [0; LONGEST];
        let Some(upper) = upper.get_mut(..name.len()) else {
            return Self::Plain;
        };
        upper.copy_from_slice(name);
        upper.make_ascii_uppercase();
        match &*upper {
            b"BLPOP" | b"BRPOP" | b"BRPOPLPUSH" | b"BLMOVE" | b"BLMPOP" | b"BZPOPMIN"
            | b"BZPOPMAX" | b"BZMPOP" => Self::Blocks,
            b"XREAD" | b"XREADGROUP" if has_block(command) => Self::Blocks,
            b"WAIT" | b"WAITAOF" => Self::Waits,
            b"WATCH" => Self::Watch,
            b"UNWATCH" => Self::Unwatch,
            b"MULTI" => Self::Multi,
            b"EXEC" => Self::Exec,
            b"DISCARD" => Self::Discard,
            b"SELECT" => Self::Select(number(args.next())),
            b"AUTH" | b"HELLO" | b"RESET" | b"READONLY" | b"READWRITE" | b"ASKING" => Self::Session,
            b"CLIENT" => client(args.next()),
            b"SCRIPT" if is(args.next(), "DEBUG") => Self::Session,
            b"SUBSCRIBE" | b"PSUBSCRIBE" | b"SSUBSCRIBE" | b"UNSUBSCRIBE" | b"PUNSUBSCRIBE"
            | b"SUNSUBSCRIBE" => Self::Subscribe(args.len()),
            b"MONITOR" => Self::Unfit(MONITOR),
            b"SYNC" | b"PSYNC" | b"REPLCONF" => Self::Unfit(REPLICA),
            b"QUIT" => Self::Unfit(QUIT),
            _ => Self::Plain,
        }
    }
}

/// Returns the name of a command, for labels and errors.
pub(crate) fn name(command: &Cmd) -> String {
    let name = words(command).next().unwrap_or_default();
    String::from_utf8_lossy(name).to_ascii_uppercase()
}

fn words(command: &Cmd) -> impl ExactSizeIterator<Item = &[u8]> {
    command.args_iter().map(|arg| match arg {
        Arg::Simple(word) => word,
        // A cursor, which is a number.
        _ => b"0",
    })
}

fn client(subcommand: Option<&[u8]>) -> Kind {
    const CHANGES: [&str; 6] = [
        "SETNAME", "SETINFO", "TRACKING", "CACHING", "NO-EVICT", "NO-TOUCH",
    ];
    if is(subcommand, "REPLY") {
        return Kind::Unfit("use `Cmd::set_no_response`");
    }
    if CHANGES.iter().any(|name| is(subcommand, name)) {
        return Kind::Session;
    }
    Kind::Plain
}

/// Returns whether `BLOCK` is among the options, which are in front of the names of the streams.
fn has_block(command: &Cmd) -> bool {
    let grouped = is(words(command).nth(1), "GROUP");
    // The group and its consumer can have any names.
    let options = words(command).skip(if grouped { 4 } else { 1 });
    options
        .take_while(|option| !is(Some(option), "STREAMS"))
        .any(|option| is(Some(option), "BLOCK"))
}

fn is(word: Option<&[u8]>, name: &str) -> bool {
    word.is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()))
}

fn number(word: Option<&[u8]>) -> Option<i64> {
    str::from_utf8(word?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
