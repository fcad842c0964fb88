//! The user and the password of a connection.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use redis::{ErrorKind, RedisConnectionInfo, RedisError, RedisResult};

use crate::builder::Builder;

/// A user and a password. `Debug` does not show the password.
///
/// ```
/// use cenote_redis::Credentials;
///
/// let credentials = Credentials::new("app", "secret-word");
/// assert_eq!((credentials.user(), credentials.password()), (Some("app"), "secret-word"));
/// assert!(!format!("{credentials:?}").contains("secret-word"));
/// assert_eq!(Credentials::password_only("secret-word").user(), None);
/// ```
#[derive(Clone)]
pub struct Credentials {
    user: Option<String>,
    password: String,
}

impl Credentials {
    /// Creates credentials of an ACL user.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self {
            user: Some(user.into()),
            password: password.into(),
        }
    }

    /// Creates credentials of the default user.
    pub fn password_only(password: impl Into<String>) -> Self {
        Self {
            user: None,
            password: password.into(),
        }
    }

    /// Returns the name of the user. `None`: the default user.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns the password.
    pub fn password(&self) -> &str {
        &self.password
    }

    fn put_into(&self, login: RedisConnectionInfo) -> RedisConnectionInfo {
        let login = login.set_password(&self.password);
        match &self.user {
            Some(user) => login.set_username(user),
            None => login,
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

type BoxError = Box<dyn StdError + Send + Sync>;
type Asked = Pin<Box<dyn Future<Output = Result<Credentials, BoxError>> + Send>>;

/// Asks for credentials.
pub(crate) type AskCredentials = dyn Fn() -> Asked + Send + Sync;

/// Returns how the next connection logs in.
pub(crate) async fn login(
    login: &RedisConnectionInfo,
    provider: Option<&AskCredentials>,
) -> RedisResult<RedisConnectionInfo> {
    let Some(provider) = provider else {
        return Ok(login.clone());
    };
    let failed = |error: BoxError| -> RedisError {
        let why = "the provider of credentials failed";
        (ErrorKind::Client, why, error.to_string()).into()
    };
    let credentials = provider().await.map_err(failed)?;
    Ok(credentials.put_into(login.clone()))
}

impl Builder {
    /// Asks `provider` for the user and the password whenever a connection is opened. Use it for
    /// secrets that change while the program runs.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_redis::{Credentials, Pool};
    ///
    /// let redis = Pool::from_url("redis://127.0.0.1:1")
    ///     .credentials(|| async { Err::<Credentials, _>("the vault is sealed") })
    ///     .build()?;
    /// let error = redis.acquire().await.unwrap_err();
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
        E: Into<BoxError>,
    {
        self.credentials = Some(Arc::new(move || {
            let asked = provider();
            Box::pin(async move { asked.await.map_err(Into::into) })
        }));
        self
    }
}
