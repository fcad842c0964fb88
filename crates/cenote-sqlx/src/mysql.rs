//! The dialect of MySQL and MariaDB.

use futures_core::future::BoxFuture;
use futures_core::stream::BoxStream;
use sqlx::error::DatabaseError;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlDatabaseError};
use sqlx::{Connection, Error, Executor, MySql};

use crate::build_error::BuildError;
use crate::builder::Draft;
use crate::credentials::Credentials;
use crate::dialect::{Dialect, statements};
use crate::error::{self, Class, lost};
use crate::scan::{Dirt, Word, words};
use crate::session::Progress;
use crate::template::Template;
use crate::transaction::TransactionOptions;

statements!(MySql);

impl Dialect for MySql {
    const PROBE: &'static str = "DO 0";

    fn classify(error: &Error) -> Class {
        error::classify(error, judge)
    }

    /// A deadlock rolls the whole transaction of its victim back, and the next statement would be
    /// committed by itself.
    fn gives_up(error: &Error) -> bool {
        let number = error.as_database_error().and_then(number_of);
        number == Some(1213)
    }

    fn scan(sql: &str) -> Dirt {
        let mut into = false;
        let mut dirt = words(sql, |word| {
            into |= word.text == "into";
            judge_word(word)
        });
        // `:=` and `INTO @name` set variables.
        if sql.contains(":=") || into && sql.contains('@') {
            dirt |= Dirt::STATE;
        }
        // These comments are code.
        if sql.contains("/*!") || sql.contains("/*M!") {
            dirt = Dirt::ANY;
        }
        dirt
    }

    fn template(
        options: MySqlConnectOptions,
        _: &mut Draft,
    ) -> Result<MySqlConnectOptions, BuildError> {
        Ok(options)
    }

    fn with_credentials(
        options: MySqlConnectOptions,
        credentials: &Credentials,
    ) -> Option<MySqlConnectOptions> {
        let options = options.username(credentials.user());
        Some(match credentials.password() {
            Some(password) => options.password(password),
            None => options,
        })
    }

    type Brake = ();

    async fn brake(_: &mut MySqlConnection, _: &Template<Self>) -> Result<(), Error> {
        Ok(())
    }

    /// Between two rows the driver can read the rest. After a drop within a packet it cannot.
    async fn settle(
        connection: &mut MySqlConnection,
        progress: Progress,
        (): &(),
        _: &Template<Self>,
        _: bool,
    ) -> Result<(), Error> {
        if progress == Progress::Running {
            return Err(lost(
                "an operation was dropped before its end: its connection is closed",
            ));
        }
        connection.flush().await
    }

    /// sqlx does not offer the reset of the protocol. SQL can release locks; any other change
    /// closes the connection.
    async fn reset(connection: &mut MySqlConnection, dirt: Dirt) -> Result<(), Error> {
        if dirt.has(Dirt::STATE | Dirt::PREPARED) {
            return Err(lost("the session was changed, and it cannot be reset"));
        }
        connection.execute("UNLOCK TABLES").await?;
        connection.execute("DO RELEASE_ALL_LOCKS()").await.map(drop)
    }

    fn begin(options: &TransactionOptions) -> Option<String> {
        if *options == TransactionOptions::default() {
            return None;
        }
        let mut sql = String::new();
        if let Some(isolation) = options.isolation {
            // Holds for the next transaction only.
            sql.push_str("SET TRANSACTION ISOLATION LEVEL ");
            sql.push_str(isolation.sql());
            sql.push_str("; ");
        }
        sql.push_str("START TRANSACTION");
        if options.read_only {
            sql.push_str(" READ ONLY");
        }
        Some(sql)
    }
}

fn number_of(error: &(dyn DatabaseError + 'static)) -> Option<u16> {
    let error = error.try_downcast_ref::<MySqlDatabaseError>()?;
    Some(error.number())
}

fn judge(error: &(dyn DatabaseError + 'static)) -> Class {
    match number_of(error) {
        // Lock wait timeout, deadlock, changed since last read.
        Some(1205 | 1213 | 1020) => Class::Conflict,
        // Too many connections, in total or of one user.
        Some(1040 | 1203 | 1226) => Class::Refused,
        // Shutdown, killed, packets out of order or unreadable, idle for too long, connection lost.
        Some(1053 | 1077 | 1079 | 1153..=1161 | 1184 | 1927 | 2006 | 2013 | 4031) | None => {
            Class::Broken
        }
        Some(_) => Class::Statement,
    }
}

fn judge_word(word: Word<'_>) -> Dirt {
    match word.text {
        "begin" | "start" | "commit" | "rollback" | "savepoint" | "release" if word.first => {
            Dirt::TRANSACTION
        }
        "xa" if word.first => Dirt::TRANSACTION | Dirt::STATE,
        // Statements that run other statements can do anything.
        "call" | "execute" | "if" | "case" | "loop" | "while" | "repeat" | "for" if word.first => {
            Dirt::ANY
        }
        "atomic" => Dirt::ANY,
        "set" | "use" | "handler" if word.first => Dirt::STATE | Dirt::TRANSACTION,
        "prepare" | "deallocate" if word.first => Dirt::PREPARED,
        "lock" | "unlock" | "flush" if word.first => Dirt::LOCKS | Dirt::TRANSACTION,
        "get_lock" => Dirt::LOCKS,
        "temporary" => Dirt::STATE,
        _ => Dirt::NONE,
    }
}
