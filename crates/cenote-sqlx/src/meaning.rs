//! The table of what each first word of a statement and each function means.

use crate::dirt::Dirt;
use crate::lexer::Language;

/// What the first word of a statement says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// It reads, unless a function or `INTO` in it writes.
    Select,
    /// It reads or writes, as the statement in it does.
    With,
    /// It reads, unless it has `ANALYZE`.
    Explain,
    Begin,
    /// `START TRANSACTION`, or `START REPLICA`.
    Start,
    /// `COMMIT`, `END`, `ROLLBACK`, `ABORT`.
    End,
    Savepoint,
    Release,
    Xa,
    Set,
    /// It changes the session for the statements after it.
    Change(Dirt),
    /// It may change the session, or takes a change back.
    May(Dirt),
    Prepare,
    Pragma,
    Create,
    Update,
    /// `LOCK TABLES`, `LOCK INSTANCE`.
    Lock,
    Flush,
    Backup,
    /// It changes the session if it names a variable.
    Variables,
    /// The server commits the current transaction first.
    Ddl,
    /// It writes, and leaves nothing in the session.
    Other,
}

const POSTGRES: u8 = 1;
const MYSQL: u8 = 2;
const SQLITE: u8 = 4;
const ALL: u8 = 7;

const STATE: Dirt = Dirt::STATE;
const LOCKS: Dirt = Dirt::LOCKS;
const PREPARED: Dirt = Dirt::PREPARED;

/// The first words of statements. A word that is not here is [`Verb::Other`].
const WORDS: &[(u8, &[&str], Verb)] = &[
    (ALL, &["select", "values"], Verb::Select),
    (POSTGRES | MYSQL, &["table", "show"], Verb::Select),
    (MYSQL, &["describe", "desc"], Verb::Explain),
    (ALL, &["explain"], Verb::Explain),
    (ALL, &["with"], Verb::With),
    (ALL, &["begin"], Verb::Begin),
    (POSTGRES | MYSQL, &["start"], Verb::Start),
    (ALL, &["commit", "rollback"], Verb::End),
    (POSTGRES | SQLITE, &["end"], Verb::End),
    (POSTGRES, &["abort"], Verb::End),
    (ALL, &["savepoint"], Verb::Savepoint),
    (ALL, &["release"], Verb::Release),
    (ALL, &["create"], Verb::Create),
    (POSTGRES, &["update"], Verb::Update),
    (POSTGRES | MYSQL, &["set"], Verb::Set),
    (POSTGRES | MYSQL, &["prepare"], Verb::Prepare),
    (POSTGRES, &["listen", "declare"], Verb::Change(STATE)),
    (POSTGRES, &["reset", "unlisten", "load"], Verb::May(STATE)),
    // The driver's statements are gone, too.
    (
        POSTGRES,
        &["deallocate", "discard"],
        Verb::May(Dirt::SESSION),
    ),
    // A block of code can change anything but the transaction.
    (POSTGRES, &["do", "call"], Verb::May(Dirt::SESSION)),
    // Statements that run other statements can do anything.
    (
        MYSQL,
        &["call", "execute", "if", "case", "loop"],
        Verb::May(Dirt::ANY),
    ),
    (MYSQL, &["while", "repeat", "for"], Verb::May(Dirt::ANY)),
    (MYSQL, &["deallocate"], Verb::May(PREPARED)),
    (MYSQL, &["unlock"], Verb::May(LOCKS)),
    (MYSQL, &["use", "handler"], Verb::Change(STATE)),
    (MYSQL, &["xa"], Verb::Xa),
    (MYSQL, &["lock"], Verb::Lock),
    (MYSQL, &["flush"], Verb::Flush),
    (MYSQL, &["backup"], Verb::Backup),
    (MYSQL, &["get", "load"], Verb::Variables),
    (
        MYSQL,
        &["alter", "drop", "truncate", "rename", "grant", "revoke"],
        Verb::Ddl,
    ),
    (
        MYSQL,
        &["analyze", "optimize", "check", "repair", "install"],
        Verb::Ddl,
    ),
    (
        MYSQL,
        &["uninstall", "cache", "reset", "change", "stop"],
        Verb::Ddl,
    ),
    (SQLITE, &["pragma"], Verb::Pragma),
    (SQLITE, &["attach"], Verb::Change(STATE)),
    (SQLITE, &["detach"], Verb::May(STATE)),
];

/// Functions that write, or that leave something in the session. `*` stands for any end of a name.
const FUNCTIONS: &[(u8, &[&str], Dirt)] = &[
    (POSTGRES, &["set_config", "setseed"], STATE),
    (
        POSTGRES,
        &["pg_advisory_lock*", "pg_try_advisory_lock*"],
        LOCKS,
    ),
    (
        POSTGRES,
        &["pg_advisory_*", "pg_try_advisory_*"],
        Dirt::NONE,
    ),
    // These run the text of a query.
    (
        POSTGRES,
        &["query_to_xml*", "crosstab*", "connectby", "xpath_table"],
        Dirt::CODE,
    ),
    (
        POSTGRES,
        &["ts_stat", "ts_rewrite", "cursor_to_xml*", "dblink*"],
        Dirt::CODE,
    ),
    // Nothing but a reset of everything undoes it.
    (
        POSTGRES,
        &["pg_replication_origin_session_setup"],
        Dirt::ANY,
    ),
    (
        POSTGRES,
        &[
            "nextval",
            "setval",
            "pg_notify",
            "lo_*",
            "pg_current_xact_id",
        ],
        Dirt::NONE,
    ),
    (
        POSTGRES,
        &[
            "pg_terminate_backend",
            "pg_cancel_backend",
            "pg_reload_conf",
        ],
        Dirt::NONE,
    ),
    (
        POSTGRES,
        &["pg_create_*", "pg_drop_*", "pg_copy_*", "pg_logical_*"],
        Dirt::NONE,
    ),
    (
        POSTGRES,
        &["pg_replication_*", "pg_switch_wal", "pg_promote"],
        Dirt::NONE,
    ),
    (
        POSTGRES,
        &[
            "pg_stat_reset*",
            "pg_file_*",
            "pg_wal_replay_*",
            "txid_current",
        ],
        Dirt::NONE,
    ),
    (
        POSTGRES,
        &["pg_rotate_logfile", "pg_export_snapshot", "pg_import_*"],
        Dirt::NONE,
    ),
    (MYSQL, &["get_lock"], LOCKS),
    (
        MYSQL,
        &["release_lock", "release_all_locks", "nextval", "setval"],
        Dirt::NONE,
    ),
    (SQLITE, &["load_extension"], STATE),
];

/// Pragmas that read, although they have an argument.
const PRAGMAS_THAT_READ: &[&str] = &[
    "table_info",
    "table_xinfo",
    "table_list",
    "index_info",
    "index_xinfo",
    "index_list",
    "foreign_key_list",
    "foreign_key_check",
    "integrity_check",
    "quick_check",
];

/// Pragmas that do something to the file, with or without an argument, and not to the session.
const PRAGMAS_OF_THE_FILE: &[&str] = &[
    "incremental_vacuum",
    "optimize",
    "wal_checkpoint",
    "shrink_memory",
];

/// Pragmas whose value is kept in the file.
const PRAGMAS_THAT_STAY: &[&str] = &["user_version", "application_id", "schema_version", "rekey"];

impl Verb {
    pub(crate) fn of(language: Language, word: &str) -> Self {
        find(WORDS, language, |name| *name == word).unwrap_or(Self::Other)
    }
}

/// Returns what this function leaves in the session, if it is in the table.
pub(crate) fn function(language: Language, name: &str) -> Option<Dirt> {
    find(FUNCTIONS, language, |pattern| {
        match pattern.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => *pattern == name,
        }
    })
}

fn find<T: Copy>(
    table: &[(u8, &[&str], T)],
    language: Language,
    fits: impl Fn(&&str) -> bool,
) -> Option<T> {
    let mask = match language {
        Language::Postgres => POSTGRES,
        Language::MySql => MYSQL,
        Language::Sqlite => SQLITE,
    };
    let fitting = |&&(languages, names, _): &&(u8, &[&str], T)| {
        languages & mask != 0 && names.iter().any(&fits)
    };
    table.iter().find(fitting).map(|(_, _, meaning)| *meaning)
}

/// What a pragma does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pragma {
    Reads,
    Writes,
    ChangesTheSession,
}

impl Pragma {
    /// Judges `PRAGMA name` or `PRAGMA name = value`.
    pub(crate) fn of(name: &str, value: Option<&str>) -> Self {
        let is_in = |names: &[&str]| names.contains(&name);
        match value {
            _ if is_in(PRAGMAS_OF_THE_FILE) => Self::Writes,
            None => Self::Reads,
            Some(_) if is_in(PRAGMAS_THAT_READ) => Self::Reads,
            Some(_) if is_in(PRAGMAS_THAT_STAY) => Self::Writes,
            // The other modes are those of one connection.
            Some("wal" | "delete") if name == "journal_mode" => Self::Writes,
            Some(_) => Self::ChangesTheSession,
        }
    }
}
