//! The user and the password of a connection.

use std::fmt;

/// A user and a password. `Debug` does not show the password.
///
/// ```
/// use cenote_sqlx::Credentials;
///
/// let credentials = Credentials::new("app", "secret-word");
/// assert_eq!((credentials.user(), credentials.password()), ("app", Some("secret-word")));
/// assert!(!format!("{credentials:?}").contains("secret-word"));
/// assert_eq!(Credentials::new("app", "").password(), None);
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
