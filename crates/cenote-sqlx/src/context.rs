//! Session context: settings that hold for the statements of one future, on whichever connection
//! they run.
//!
//! A session keeps the context of its last user, so that the next user with the same context pays
//! nothing. Every statement and every `acquire` first compares what the session has with what its
//! caller needs. A session whose context is in doubt gets it again, so that a dropped or failed
//! change cannot leave a wrong one.

mod applied;
mod dialects;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use crate::db::Db;
use crate::dialect::Dialect;
use crate::template::Template;

pub(crate) use self::applied::Applied;
pub(crate) use self::dialects::Contextual;

/// The names and values of a context.
pub(crate) type Settings = BTreeMap<String, String>;

tokio::task_local! {
    /// The contexts of the current future: at most one for each database.
    static CURRENT: Vec<Arc<dyn Any + Send + Sync>>;
}

/// Settings of the session for the statements of one future: the tenant of row-level security,
/// `search_path`, the time zone. Made by [`Db::with_context`].
///
/// ```
/// # #[cfg(feature = "postgres")] fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_sqlx::{Context, Db};
///
/// let db = Db::postgres("postgres://app@localhost/shop").build()?;
/// let context: Context<sqlx::Postgres> = db.with_context([("app.tenant", 42)]);
/// assert_eq!(context.settings().collect::<Vec<_>>(), [("app.tenant", "42")]);
/// # Ok(()) }
/// # #[cfg(not(feature = "postgres"))] fn main() {}
/// ```
#[must_use = "a context holds in the future that it runs"]
pub struct Context<DB: Dialect> {
    template: Arc<Template<DB>>,
    settings: Arc<Settings>,
}

impl<DB: Dialect> Db<DB> {
    /// Returns a context: every statement of the future that it [runs](Context::run) finds these
    /// settings in its session. A context inside another one adds to it.
    ///
    /// On PostgreSQL a name is that of any setting (`app.tenant`, `search_path`, `role`). On MySQL
    /// it is a session variable (`time_zone`), or a variable of the user with its `@` (`@tenant`).
    /// SQLite has no such settings.
    ///
    /// ```no_run
    /// # #[cfg(feature = "postgres")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::postgres("postgres://app@localhost/shop").build()?;
    /// // CREATE POLICY own ON orders USING (tenant = current_setting('app.tenant')::bigint)
    /// let orders = db.with_context([("app.tenant", 42)]).run(async {
    ///     sqlx::query_scalar::<_, i64>("SELECT count(*) FROM orders").fetch_one(&db).await
    /// });
    /// assert_eq!(orders.await?, 3);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "postgres"))] fn main() {}
    /// ```
    pub fn with_context<K, V>(&self, settings: impl IntoIterator<Item = (K, V)>) -> Context<DB>
    where
        K: Into<String>,
        V: ToString,
    {
        let mut all = Settings::clone(&self.context().settings);
        let settings = settings.into_iter();
        all.extend(settings.map(|(name, value)| (name.into(), value.to_string())));
        Context {
            template: Arc::clone(&self.pool().manager().template),
            settings: Arc::new(all),
        }
    }

    /// Returns the context of the caller, to [run](Context::run) a spawned task in it. Outside any
    /// context it is empty.
    ///
    /// ```
    /// # #[cfg(feature = "postgres")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::postgres("postgres://app@localhost/shop").build()?;
    /// assert_eq!(db.context().settings().count(), 0);
    /// let tasks = db.with_context([("app.tenant", 42)]).run(async {
    ///     let (inside, context) = (db.clone(), db.context());
    ///     let inherits = tokio::spawn(async move { inside.context().settings().count() });
    ///     let inside = db.clone();
    ///     let work = async move { inside.context().settings().count() };
    ///     let enters = tokio::spawn(context.run(work));
    ///     (inherits.await, enters.await)
    /// });
    /// let (inherits, enters) = tasks.await;
    /// assert_eq!((inherits?, enters?), (0, 1));
    /// # Ok(()) }
    /// # #[cfg(not(feature = "postgres"))] fn main() {}
    /// ```
    pub fn context(&self) -> Context<DB> {
        let template = &self.pool().manager().template;
        Context {
            template: Arc::clone(template),
            settings: current(template).unwrap_or_default(),
        }
    }
}

impl<DB: Dialect> Context<DB> {
    /// Runs `future` in this context, in a [scope](cenote::scope()) of its own.
    ///
    /// The settings are applied before the first statement, in one round trip, or in none if the
    /// connection has them already. The connection stays in the scope, so that the next statement
    /// needs none. Any other caller gets the connection without these settings, also after a
    /// cancel, a panic or an error. The text of a statement that changes the session
    /// (`SET`) does not outlive that statement: the context is applied again.
    ///
    /// A setting that the server refuses is the error of the statement, and the connection is
    /// closed.
    ///
    /// # Cancel safety
    /// Dropping this future drops `future`.
    pub async fn run<F: Future>(self, future: F) -> F::Output {
        let mut all = CURRENT.try_with(Vec::clone).unwrap_or_default();
        all.retain(|other| of(other, &self.template).is_none());
        all.push(Arc::new(self));
        CURRENT.scope(all, cenote::scope(future)).await
    }

    /// Returns the names and values, in the order of the names.
    pub fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        let settings = self.settings.iter();
        settings.map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Returns the context of the caller for sessions of this template.
fn current<DB: Dialect>(template: &Arc<Template<DB>>) -> Option<Arc<Settings>> {
    let find = |all: &Vec<Arc<dyn Any + Send + Sync>>| {
        all.iter()
            .find_map(|context| of(context, template).cloned())
    };
    let found = CURRENT.try_with(find).ok().flatten();
    found.filter(|settings| !settings.is_empty())
}

fn of<'a, DB: Dialect>(
    context: &'a Arc<dyn Any + Send + Sync>,
    template: &Arc<Template<DB>>,
) -> Option<&'a Arc<Settings>> {
    let context: &Context<DB> = context.downcast_ref()?;
    Arc::ptr_eq(&context.template, template).then_some(&context.settings)
}

impl<DB: Dialect> Clone for Context<DB> {
    fn clone(&self) -> Self {
        Self {
            template: Arc::clone(&self.template),
            settings: Arc::clone(&self.settings),
        }
    }
}

impl<DB: Dialect> fmt::Debug for Context<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
