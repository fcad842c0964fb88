//! Problems made from errors of pools and of sqlx.

use std::error::Error;
use std::fmt;
use std::io;
use std::iter::successors;
#[cfg(feature = "sqlx")]
use std::sync::Arc;

use cenote::scope::BindError;
use cenote::status::HolderGroup;
use cenote::{AcquireError, OpenError};
use http::StatusCode;

use crate::estimate::Line;
use crate::problem::Problem;

const BUSY: &str = "the service is busy, try again later";
#[cfg(feature = "sqlx")]
const NOT_FOUND: &str = "there is no such thing";
#[cfg(feature = "sqlx")]
const CONFLICT: &str = "the request conflicts with what is stored";

impl Problem {
    /// Returns the 503 for an error of a pool that has nothing to lend, or for an error with such a
    /// cause. Returns `None` for any other error, also for that of a closed pool.
    ///
    /// `E` is the error of the pool's manager.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote::{ClosureError, Pool};
    /// use cenote_tower::Problem;
    ///
    /// let pool = Pool::from_fn(async || Ok::<_, std::io::Error>(())).build()?;
    /// pool.breaker().trip();
    /// let error = pool.acquire().await.unwrap_err();
    /// assert_eq!(Problem::of::<ClosureError>(&error).expect("nothing to lend").status(), 503);
    /// assert!(Problem::of::<ClosureError>(&std::io::Error::other("disk on fire")).is_none());
    /// # Ok(()) }
    /// ```
    pub fn of<E: fmt::Debug + 'static>(error: &(dyn Error + 'static)) -> Option<Self> {
        let found = causes(error).find_map(|cause| match cause.downcast_ref() {
            Some(BindError::<E>::Acquire(acquire)) => busy(acquire),
            _ => busy::<E>(cause.downcast_ref()?),
        });
        found.map(|busy| busy.with_report_of(error))
    }

    /// Returns the problem of an error of sqlx that has a status of its own, or of an error with
    /// such a cause: the pool has nothing to lend, a row was not found, a unique or a foreign key
    /// was violated, or transactions were in conflict. Returns `None` for any other error.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:").max_size(1).build()?;
    /// use cenote_tower::Problem;
    ///
    /// db.pool().breaker().trip();
    /// let error = sqlx::query("SELECT 1").execute(&db).await.unwrap_err();
    /// assert_eq!(Problem::of_sqlx(&error).expect("nothing to lend").status(), 503);
    /// assert_eq!(Problem::of_sqlx(&sqlx::Error::RowNotFound).unwrap().status(), 404);
    /// assert!(Problem::of_sqlx(&sqlx::Error::WorkerCrashed).is_none());
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "sqlx")]
    pub fn of_sqlx(error: &(dyn Error + 'static)) -> Option<Self> {
        let found = causes(error).find_map(|cause| by_sqlx(cause.downcast_ref()?));
        let found = found.map(|problem| problem.with_report_of(error));
        found.or_else(|| Self::of::<sqlx::Error>(error))
    }

    /// Returns the problem of a transaction that failed after its handler: a 503 if it may pass
    /// with time, and a 500 otherwise. A violated key is no answer to the client then, because the
    /// handler has said that all is well.
    #[cfg(feature = "sqlx")]
    pub(crate) fn of_failed_transaction(error: Arc<sqlx::Error>) -> Self {
        let found = Self::of_sqlx(&*error);
        let found = found.filter(|problem| problem.status() == StatusCode::SERVICE_UNAVAILABLE);
        let problem = found.unwrap_or_else(|| Self::internal(&*error));
        problem.with_error(error)
    }

    /// Returns the response to a request whose handler was done when its transaction failed: a 503
    /// if it may pass with time, and a 500 otherwise.
    ///
    /// ```
    /// use cenote_tower::Problem;
    ///
    /// let problem = Problem::uncommitted(sqlx::Error::WorkerCrashed);
    /// assert_eq!(problem.status(), 500);
    /// assert!(problem.report().contains("was not committed"));
    /// ```
    #[cfg(feature = "sqlx")]
    pub fn uncommitted(error: sqlx::Error) -> Self {
        let problem = Self::of_failed_transaction(Arc::new(error));
        let told = "the transaction of this request was not committed";
        let report = format!("{told}: {}", problem.report());
        problem.with_report(report)
    }

    fn with_report_of(self, error: &(dyn Error + 'static)) -> Self {
        let report = story(error, &self.holders);
        self.with_report(report)
    }
}

/// Returns the problem of an error that may pass with time.
fn busy<E>(error: &AcquireError<E>) -> Option<Problem> {
    let mut busy = Problem::new(StatusCode::SERVICE_UNAVAILABLE, BUSY);
    let open = match error {
        AcquireError::TimedOut(seen) => {
            busy.holders = seen.holders().into();
            busy.line = Some(Line {
                pool: seen.pool().to_owned(),
                waiting: seen.status().waiting,
            });
            seen.last_open_error()
        }
        AcquireError::Rejected { pool, waiting } => {
            let (pool, waiting) = (String::from(&**pool), *waiting);
            busy.line = Some(Line { pool, waiting });
            None
        }
        AcquireError::Unavailable(unavailable) => {
            if let Some(after) = unavailable.retry_after {
                busy = busy.with_estimate(after);
            }
            unavailable.cause.as_ref()
        }
        AcquireError::Open { error, .. } => Some(error),
        _ => return None,
    };
    Some(match open {
        Some(open) if is_denied(open) => busy.without_retry_after(),
        _ => busy,
    })
}

/// Returns whether opens fail until a setting is changed: a retry cannot help.
fn is_denied<E>(error: &OpenError<E>) -> bool {
    let OpenError::Failed(cause) = error else {
        return false;
    };
    causes(cause.as_error()).any(|cause| {
        #[cfg(feature = "sqlx")]
        if let Some(error) = cause.downcast_ref() {
            return cenote_sqlx::is_denied(error);
        }
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    })
}

#[cfg(feature = "sqlx")]
fn by_sqlx(error: &sqlx::Error) -> Option<Problem> {
    if let Some(BindError::Acquire(acquire)) = cenote_sqlx::pool_error(error) {
        return busy(acquire);
    }
    let by_key = error.as_database_error();
    let by_key =
        by_key.map(|error| error.is_unique_violation() || error.is_foreign_key_violation());
    if matches!(error, sqlx::Error::RowNotFound) {
        Some(Problem::new(StatusCode::NOT_FOUND, NOT_FOUND))
    } else if by_key == Some(true) {
        Some(Problem::new(StatusCode::CONFLICT, CONFLICT))
    } else if cenote_sqlx::classify(error) == cenote_sqlx::Class::Conflict {
        Some(Problem::new(StatusCode::SERVICE_UNAVAILABLE, BUSY))
    } else {
        None
    }
}

/// Returns the error, its cause, the cause of that, and so on.
pub(crate) fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |&cause| cause.source())
}

/// Returns the report of an error: its text, every holder and every cause. A cause that is part of
/// the text above it is left out.
pub(crate) fn story(error: &(dyn Error + 'static), holders: &[HolderGroup]) -> String {
    let mut story = error.to_string();
    let held = holders.iter().map(|group| format!("\nheld: {group}"));
    story.extend(held);
    for cause in causes(error).skip(1).map(ToString::to_string) {
        // The text of a pool's error has its causes in one line.
        if !story.contains(&cause) && !story.contains(&cause.replace('\n', " ")) {
            story.push_str("\ncause: ");
            story.push_str(&cause);
        }
    }
    story
}

impl<E: fmt::Debug + 'static> From<AcquireError<E>> for Problem {
    fn from(error: AcquireError<E>) -> Self {
        Self::of::<E>(&error).unwrap_or_else(|| Self::internal(&error))
    }
}

impl<E: fmt::Debug + 'static> From<BindError<E>> for Problem {
    fn from(error: BindError<E>) -> Self {
        Self::of::<E>(&error).unwrap_or_else(|| Self::internal(&error))
    }
}

#[cfg(feature = "sqlx")]
impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        let problem = Self::of_sqlx(&error).unwrap_or_else(|| Self::internal(&error));
        problem.with_error(Arc::new(error))
    }
}
