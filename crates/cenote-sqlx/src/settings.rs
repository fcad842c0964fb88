//! The settings of all connections of a handle, which can be changed while it lives.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::{Connection, Error};

use crate::db::Db;
use crate::dialect::{Dialect, Statements};
use crate::error::lost;
use crate::session::Session;

/// The texts that every connection runs after its open and after every reset.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Counts the changes, so that a session knows whether it has all of them.
    version: AtomicU64,
    texts: Mutex<Arc<[String]>>,
}

impl Settings {
    pub(crate) fn new(texts: Vec<String>) -> Self {
        Self {
            version: AtomicU64::new(0),
            texts: Mutex::new(texts.into()),
        }
    }

    /// Read it before [`texts`](Settings::texts): then those are not older.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn texts(&self) -> Arc<[String]> {
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&texts)
    }

    /// Adds a text, in place of one that sets the same.
    fn set(&self, sql: String) {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = texts.to_vec();
        match all.iter_mut().find(|old| subject(old) == subject(&sql)) {
            Some(old) => *old = sql,
            None => all.push(sql),
        }
        *texts = all.into();
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// Returns what a text sets: the part before `=` or `TO`, or all of a text that sets more than one
/// thing.
fn subject(sql: &str) -> String {
    let words: Vec<String> = sql
        .replace('=', " = ")
        .split_whitespace()
        .map(str::to_lowercase)
        .collect();
    let end = words.iter().position(|word| word == "=" || word == "to");
    let several = sql.contains([',', ';', '(']);
    words[..end.filter(|_| !several).unwrap_or(words.len())].join(" ")
}

impl<DB: Dialect> Db<DB> {
    /// Adds a [setting](crate::Builder::setting) on the living handle, or replaces the one that
    /// sets the same. It reaches every connection before its next statement outside a transaction,
    /// also one that is lent now, and every new connection.
    ///
    /// It is first tried on a connection of its own, which is one more than `max_size`. A text that
    /// fails there changes nothing.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:").max_size(1).build()?;
    /// let size = || sqlx::query_scalar::<_, i64>("PRAGMA cache_size").fetch_one(&db);
    /// size().await?;
    /// db.set("PRAGMA cache_size = -4000").await?;
    /// assert_eq!(size().await?, -4000);
    /// assert!(db.set("PRAGMA cache_size = ").await.is_err());
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future changes nothing.
    pub async fn set(&self, sql: impl Into<String>) -> Result<(), Error> {
        let sql = sql.into();
        if self.sandbox.is_some() {
            return Err(Error::InvalidArgument(String::from(
                "a sandbox has one session, whose transaction is open: run the statement itself",
            )));
        }
        let template = &self.pool().manager().template;
        let tried = async {
            template.drop_anchor().await?;
            let mut connection = template.connect().await?;
            template.apply_settings(&mut connection).await?;
            <DB as Statements>::run(&mut connection, &sql).await?;
            connection.close().await
        };
        match self.pool().config().open_timeout {
            None => tried.await?,
            Some(limit) => {
                let tried = tokio::time::timeout(limit, tried).await;
                tried.map_err(|_| lost("the server did not answer within `open_timeout`"))??;
            }
        }
        template.settings.set(sql);
        Ok(())
    }
}

impl<DB: Dialect> Session<DB> {
    /// Returns whether settings were changed that the session does not have yet. In a transaction
    /// it gets them afterwards, because a rollback would take them back.
    pub(crate) fn is_out_of_date(&self) -> bool {
        self.state.settings != self.template.settings.version() && !self.is_in_transaction()
    }

    /// Gives the session settings that were changed since it had them.
    pub(crate) async fn fit_settings(&mut self) -> Result<(), Error> {
        if !self.is_out_of_date() {
            return Ok(());
        }
        let version = self.template.settings.version();
        for sql in &*self.template.settings.texts() {
            if let Err(error) = self.run(sql).await {
                // Without its settings the session must not be used.
                self.state.broken = true;
                return Err(error);
            }
        }
        self.state.context.doubt();
        self.state.settings = version;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
