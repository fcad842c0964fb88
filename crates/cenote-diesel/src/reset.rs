//! What becomes of a connection whose session may have changed.

use std::borrow::Cow;

/// What becomes of a connection after a statement that may have changed its session: settings,
/// temporary tables, session locks, subscriptions.
///
/// The text of each statement tells. A text is harmless if it begins with a word like `SELECT`,
/// `INSERT` or `CREATE`, and contains none of a few words like `set_config` or `TEMPORARY`. All
/// statements that diesel itself builds are harmless. A function of yours on the server that
/// changes the session is not noticed.
///
/// An open transaction is rolled back in any case.
///
/// ```
/// # #[cfg(feature = "postgres")]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_diesel::{Diesel, Reset};
/// use cenote_diesel::diesel_async::AsyncPgConnection;
///
/// let manager = Diesel::<AsyncPgConnection>::new("postgres://app@localhost/shop");
/// let pool = cenote::Pool::builder(manager.reset(Reset::POSTGRES)).build()?;
/// assert_eq!(pool.status().opened, 0);
/// # Ok(()) }
/// # #[cfg(not(feature = "postgres"))] fn main() {}
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reset {
    /// The connection is closed. A service that changes sessions all the time sets one of the
    /// others.
    #[default]
    Close,
    /// These statements are executed. They must keep prepared statements, and repeat the settings
    /// that were made when the connection was opened.
    Query(Cow<'static, str>),
    /// The next user gets the changed session.
    Never,
}

impl Reset {
    /// Resets a session of PostgreSQL and keeps its prepared statements. Of the settings that were
    /// made when the connection was opened, only those of diesel are repeated.
    pub const POSTGRES: Self = Self::Query(Cow::Borrowed(
        "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; \
         SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES; \
         SET TIME ZONE 'UTC'; SET CLIENT_ENCODING TO 'UTF8'",
    ));
}
