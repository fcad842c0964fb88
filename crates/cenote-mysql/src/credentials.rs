//! The user and the password of a connection.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use crate::builder::Builder;
use crate::template::Pending;

type Asked = Pending<'static, Result<Credentials, Box<dyn StdError + Send + Sync>>>;

pub(crate) type AskCredentials = dyn Fn() -> Asked + Send + Sync;

/// A user and a password. `Debug` does not show the password.
///
/// ```
/// use cenote_mysql::Credentials;
///
/// let credentials = Credentials::new("app", "secret-word");
/// assert_eq!((credentials.user(), credentials.password()), ("app", Some("secret-word")));
/// assert!(!format!("{credentials:?}").contains("secret-word"));
/// ```
#[derive(Clone)]
pub struct Credentials {
    user: String,
    password: String,
}

impl Credentials {
    /// Creates credentials. An empty password means that there is none.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        let (user, password) = (user.into(), password.into());
        Self { user, password }
    }

    /// Returns the name of the user.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Returns the password, if there is one.
    pub fn password(&self) -> Option<&str> {
        Some(&*self.password).filter(|password| !password.is_empty())
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// Asks `provider` for the user and the password whenever a connection is opened. Use it for
    /// secrets that change while the program runs.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_mysql::{Credentials, Pool};
    ///
    /// let pool = Pool::from_url("mysql://127.0.0.1:1/shop")
    ///     .credentials(|| async { Err::<Credentials, _>("the vault is sealed") })
    ///     .build()?;
    /// let error = pool.acquire().await.unwrap_err();
    /// assert!(error.to_string().contains("the vault is sealed"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// The pool drops the future of `provider` when the open takes longer than `open_timeout`.
    pub fn credentials<F, Fut, E>(mut self, provider: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        self.credentials = Some(Arc::new(move || {
            let asked = provider();
            Box::pin(async move { asked.await.map_err(Into::into) })
        }));
        self
    }
}
