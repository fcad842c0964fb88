//! Tokens of each language, by hand and against another tokenizer.

use sqlparser::dialect::{Dialect, MySqlDialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::tokenizer::{Token as Theirs, Tokenizer};

use super::{Kind, Language, Lexer};

/// Returns the words, names, strings and semicolons of a text.
fn tokens(language: Language, text: &str) -> Vec<String> {
    let shown = Lexer::new(language, text).filter_map(|token| match token.kind {
        Kind::Word => Some(token.name().to_string()),
        Kind::Quoted => Some(format!("<{}>", &*token.name())),
        Kind::Text => Some(String::from("'")),
        Kind::Symbol(b';') => Some(String::from(";")),
        Kind::Number | Kind::Symbol(_) => None,
    });
    shown.collect()
}

/// Returns the same by another tokenizer, or `None` if it refuses the text.
fn expected(dialect: &dyn Dialect, text: &str) -> Option<Vec<String>> {
    let all = Tokenizer::new(dialect, text).with_unescape(true);
    let all = { all }.tokenize().ok()?;
    // Neither `$a` nor `b"a"` is a token of PostgreSQL.
    let other = |token: &_| {
        matches!(
            token,
            Theirs::Placeholder(_) | Theirs::DoubleQuotedByteStringLiteral(_)
        )
    };
    if all.iter().any(other) {
        return None;
    }
    let shown = all.into_iter().filter_map(|token| match token {
        Theirs::Word(word) if word.quote_style.is_some() => {
            Some(format!("<{}>", short(&word.value)))
        }
        Theirs::Word(word) => Some(short(&word.value)),
        Theirs::SemiColon => Some(String::from(";")),
        Theirs::SingleQuotedString(_)
        | Theirs::DoubleQuotedString(_)
        | Theirs::DollarQuotedString(_)
        | Theirs::NationalStringLiteral(_)
        | Theirs::EscapedStringLiteral(_)
        | Theirs::SingleQuotedByteStringLiteral(_)
        | Theirs::HexStringLiteral(_)
        | Theirs::UnicodeStringLiteral(_) => Some(String::from("'")),
        _ => None,
    });
    Some(shown.collect())
}

/// Returns the name as the lexer does.
fn short(name: &str) -> String {
    let name = if name.len() > 40 { "" } else { name };
    name.to_ascii_lowercase()
}

const SHARED: &[&str] = &[
    " ",
    " ",
    "\n",
    "\n",
    "begin",
    "y",
    "set",
    ";",
    ",",
    "(",
    ")",
    "'",
    "'",
    "''",
    "'it''s'",
    "\"",
    "\"a\"\"b\"",
    "--",
    "-- c\n",
    "/*",
    "*/",
    "/* ; */",
    "/ ",
    "* ",
    "- ",
    "= ",
    "é",
    "7",
];
const POSTGRES: &[&str] = &[
    "$$",
    "$a$",
    "$b$",
    "$a$ ; $b$ $a$",
    "/* /* */",
    "*/ */",
    "e'\\''",
    " E'a\\\\'",
    " n'b'",
    "a$b",
    " u&'x'",
];
const MYSQL: &[&str] = &[
    "`",
    "`a``b`",
    "# c\n",
    "\\'",
    "'\\''",
    "\"\\\"\"",
    "--y",
    "/*!40101 y */",
];
const SQLITE: &[&str] = &["`", "`a``b`", "[a'b]", "["];

#[test]
fn tokens_are_those_of_another_tokenizer() {
    let languages: [(Language, &dyn Dialect, &[&str]); 3] = [
        (Language::Postgres, &PostgreSqlDialect {}, POSTGRES),
        (Language::MySql, &MySqlDialect {}, MYSQL),
        (Language::Sqlite, &SQLiteDialect {}, SQLITE),
    ];
    for (language, dialect, own) in languages {
        let (mut compared, mut random) = (0, fastrand::Rng::with_seed(815));
        for seed in 0..40_000_u64 {
            random.seed(seed);
            let parts = (0..random.usize(1..14)).map(|_| match random.bool() {
                true => SHARED[random.usize(..SHARED.len())],
                false => own[random.usize(..own.len())],
            });
            let text: String = parts.collect();
            // Whatever the text is, reading it ends without a panic.
            let found = tokens(language, &text);
            if let Some(expected) = expected(dialect, &text) {
                assert_eq!(found, expected, "{language:?}, seed {seed}: {text:?}");
                compared += 1;
            }
        }
        assert!(compared > 5_000, "{language:?}: {compared} texts");
    }
}

#[track_caller]
fn reads(language: Language, text: &str, expected: &[&str]) {
    assert_eq!(tokens(language, text), expected, "{language:?}: {text}");
}

#[test]
fn comments_end_where_the_database_ends_them() {
    use Language::{MySql, Postgres, Sqlite};
    reads(Postgres, "a /* b /* c */ d */ e", &["a", "e"]);
    reads(MySql, "a /* b /* c */ d", &["a", "d"]);
    reads(Sqlite, "a /* b /* c */ d", &["a", "d"]);
    reads(Postgres, "a --b\rc", &["a", "c"]);
    reads(MySql, "a --b\nc", &["a", "b", "c"]);
    reads(MySql, "a --\tb\nc", &["a", "c"]);
    reads(MySql, "a --", &["a"]);
    reads(MySql, "a # it's\nc", &["a", "c"]);
    reads(Sqlite, "a --b it's\nc /* d", &["a", "c"]);
    reads(MySql, "a /*!50000 b /* c */ d */ e", &["a", "b", "d", "e"]);
    reads(MySql, "a /*M!100100 b */ e", &["a", "b", "e"]);
    reads(Postgres, "a /*! b */ e", &["a", "e"]);
}

#[test]
fn quotes_end_where_the_database_ends_them() {
    use Language::{MySql, Postgres, Sqlite};
    reads(Postgres, r"'it\' ; a", &["'", ";", "a"]);
    reads(Postgres, r"E'it\' ; a' b", &["'", "b"]);
    reads(Postgres, r"e'\\' b", &["'", "b"]);
    reads(MySql, r"'it\'s ; a' b", &["'", "b"]);
    reads(MySql, r#""it\"s; a" b"#, &["'", "b"]);
    reads(Sqlite, r"'it\' ; a", &["'", ";", "a"]);
    reads(
        Postgres,
        "$$ it's ; $$ a $x$ $$ $x$ b",
        &["'", "a", "'", "b"],
    );
    reads(Postgres, "a$$b $1 $2$ c", &["a$$b", "c"]);
    reads(
        Sqlite,
        "[a ; b] `c ; ``d` \"e ; \"\"f\"",
        &["<a ; b>", "<c ; `d>", "<e ; \"f>"],
    );
    reads(MySql, r"'\", &["'"]);
}

#[test]
fn names_are_read_without_their_quotes_and_escapes() {
    use Language::{MySql, Postgres};
    reads(Postgres, r#"U&"set\005fconfig""#, &["<set_config>"]);
    reads(Postgres, r#"u&"\+000053et\\" x"#, &[r"<set\>", "x"]);
    reads(Postgres, r#""Set_Config""#, &["<set_config>"]);
    reads(MySql, "`GET_LOCK`", &["<get_lock>"]);
}
