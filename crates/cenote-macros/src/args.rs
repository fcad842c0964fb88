//! The arguments of the attribute: the database and the options.

use proc_macro2::Span;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Expr, Ident, Path, Result, Token};

const OPTIONS: [&str; 4] = ["read_only", "isolation", "retry", "nested"];
const LEVELS: [&str; 4] = [
    "ReadUncommitted",
    "ReadCommitted",
    "RepeatableRead",
    "Serializable",
];

#[derive(Default)]
pub(crate) struct Args {
    pub(crate) db: Option<Expr>,
    pub(crate) read_only: bool,
    pub(crate) isolation: Option<Ident>,
    pub(crate) retry: Option<Retry>,
    pub(crate) join: bool,
}

pub(crate) enum Retry {
    /// `retry`: as `Retry::default()` says.
    Default,
    /// `retry = ..`: as this expression says.
    As(Expr),
}

impl Parse for Args {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut args = Self::default();
        let mut given: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            if is_option(input) {
                let name: Ident = input.parse()?;
                if given.contains(&name) {
                    let twice = format!("`{name}` is given twice: remove one");
                    return Err(Error::new(name.span(), twice));
                }
                args.read_option(&name, input)?;
                given.push(name);
            } else {
                args.read_db(input)?;
            }
            if !input.is_empty() && input.parse::<Token![,]>().is_err() {
                return Err(input.error("expected `,`, or `= ..` for the value of an option"));
            }
        }
        Ok(args)
    }
}

/// Returns whether the next argument is an option: a known word, or a word with a value. Any other
/// argument is the expression of the database.
fn is_option(input: ParseStream<'_>) -> bool {
    let Ok(name) = input.fork().parse::<Ident>() else {
        return false;
    };
    let known = OPTIONS.iter().any(|option| name == option);
    known && !input.peek2(Token![.]) || input.peek2(Token![=])
}

impl Args {
    fn read_db(&mut self, input: ParseStream<'_>) -> Result<()> {
        let db: Expr = input.parse()?;
        if self.db.is_some() {
            let two = "a transaction has one database, and this is a second one: remove it, and call a \
                       function that is transactional on the other";
            return Err(Error::new_spanned(db, two));
        }
        self.db = Some(db);
        Ok(())
    }

    fn read_option(&mut self, name: &Ident, input: ParseStream<'_>) -> Result<()> {
        let has_value = input.parse::<Option<Token![=]>>()?.is_some();
        match name.to_string().as_str() {
            "read_only" if has_value => {
                let text = "`read_only` takes no value: write it to refuse writes, leave it out to allow them";
                return Err(Error::new(name.span(), text));
            }
            "read_only" => self.read_only = true,
            "isolation" => self.isolation = Some(level(name, input)?),
            "retry" if has_value => self.retry = Some(Retry::As(input.parse()?)),
            "retry" => self.retry = Some(Retry::Default),
            "nested" => self.join = joins(name, input)?,
            _ => return Err(unknown(name)),
        }
        Ok(())
    }
}

fn level(option: &Ident, input: ParseStream<'_>) -> Result<Ident> {
    let text = format!("`isolation` is one of `{}`", LEVELS.join("`, `"));
    let level = word(option.span(), input, &text)?;
    if LEVELS.iter().any(|known| level == known) {
        Ok(level)
    } else {
        Err(Error::new(level.span(), text))
    }
}

fn joins(option: &Ident, input: ParseStream<'_>) -> Result<bool> {
    let text = "`nested` is `savepoint` (a failure undoes its own part, the default) or `join` (part of the outer transaction)";
    let way = word(option.span(), input, text)?;
    match way.to_string().as_str() {
        "savepoint" => Ok(false),
        "join" => Ok(true),
        _ => Err(Error::new(way.span(), text)),
    }
}

/// Reads the value of an option: one word, or a path that ends with it (`Isolation::Serializable`).
fn word(option: Span, input: ParseStream<'_>, otherwise: &str) -> Result<Ident> {
    if input.is_empty() || input.peek(Token![,]) {
        return Err(Error::new(option, otherwise));
    }
    let path: Path = input
        .parse()
        .map_err(|error| Error::new(error.span(), otherwise))?;
    let last = path.segments.into_iter().next_back();
    last.map(|segment| segment.ident)
        .ok_or_else(|| Error::new(option, otherwise))
}

pub(crate) fn unknown(name: &Ident) -> Error {
    let text = format!(
        "`{name}` is neither an argument of the function nor an option: the options are `read_only`, \
         `isolation = Serializable`, `retry`, `retry = ..`, `nested = savepoint` and `nested = join`"
    );
    Error::new(name.span(), text)
}
