//! A failed request: a response in `application/problem+json` for the client, and a report for the
//! log.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::iter::successors;
use std::sync::Arc;
use std::time::Duration;

use cenote::AcquireError;
use cenote::scope::BindError;
use cenote::status::HolderGroup;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use crate::text::{Text, quoted};

/// `Retry-After` where neither the error nor the layer knows better.
pub(crate) const RETRY_AFTER_DEFAULT: Duration = Duration::from_secs(1);

const BUSY: &str = "the service is busy, try again later";
const FAILED: &str = "the request could not be served";

/// The response to a request that failed. The client gets the status and the detail. The report
/// goes to the log: see [`ProblemLayer::on_problem`](crate::ProblemLayer::on_problem).
///
/// The error of a pool that has nothing to lend (timeout, breaker tripped, too many waiters)
/// becomes a 503 with `Retry-After`. Any other error that `?` converts becomes a 500 without
/// details. With the feature `axum` a problem is a response, so that a handler can return it as its
/// error.
///
/// Do not send `error.to_string()` to a client instead. The text of a pool error has file names of
/// the program and the statements of other requests.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use cenote_tower::Problem;
///
/// let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(())).name("rooms").max_size(1).build()?;
/// let _held = pool.acquire().await?;
/// let problem = Problem::from(pool.acquire_within(Duration::from_millis(5)).await.unwrap_err());
///
/// let response = problem.to_response();
/// assert_eq!(response.status(), 503);
/// assert_eq!(response.headers()["retry-after"], "1");
/// assert!(!response.body().as_str().contains("rooms"), "the client learns nothing about the pool");
/// assert!(problem.report().contains("rooms") && problem.holders()[0].count == 1);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Problem {
    status: StatusCode,
    detail: Cow<'static, str>,
    retry_after: Option<Duration>,
    report: Option<Arc<str>>,
    holders: Arc<[HolderGroup]>,
}

impl Problem {
    /// Creates a problem with a text for the client.
    ///
    /// ```
    /// use std::time::Duration;
    /// use cenote_tower::Problem;
    /// use http::StatusCode;
    ///
    /// let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "closed for the night")
    ///     .with_retry_after(Duration::from_secs(3600))
    ///     .with_report("the cleaners are here");
    /// assert_eq!((problem.status().as_u16(), problem.detail()), (503, "closed for the night"));
    /// assert_eq!(problem.retry_after(), Some(Duration::from_secs(3600)));
    /// assert_eq!(problem.report(), "the cleaners are here");
    /// assert_eq!(problem.to_response().headers()["retry-after"], "3600");
    /// ```
    pub fn new(status: StatusCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            detail: detail.into(),
            retry_after: None,
            report: None,
            holders: Arc::default(),
        }
    }

    /// Sets the `Retry-After` of a 503. Without it the value is that of
    /// [`ProblemLayer`](crate::ProblemLayer), or one second.
    pub fn with_retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// Sets the text for the log.
    pub fn with_report(mut self, report: impl Into<Arc<str>>) -> Self {
        self.report = Some(report.into());
        self
    }

    /// Creates a 500 for an internal error. The error and its causes are in the report.
    ///
    /// ```
    /// # use cenote_tower::Problem;
    /// let problem = Problem::internal(&std::io::Error::other("disk on fire"));
    /// assert_eq!(problem.status(), 500);
    /// assert!(problem.report().contains("disk on fire") && !problem.detail().contains("disk"));
    /// ```
    pub fn internal(error: &(dyn Error + 'static)) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, FAILED).with_report(story(error, &[]))
    }

    /// Creates a 500 for a mistake in the program. A debug build also tells the client how to fix
    /// it.
    #[cfg(all(feature = "axum", feature = "sqlx"))]
    pub(crate) fn miswired(report: &'static str) -> Self {
        let detail = if cfg!(debug_assertions) {
            report
        } else {
            FAILED
        };
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail).with_report(report)
    }

    /// Returns the 503 for an error of a pool that has nothing to lend, or for an error with such a
    /// cause. Returns `None` for any other error.
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

    /// Returns the 503 for an error of sqlx that means that the pool has nothing to lend, or for an
    /// error with such a cause. Returns `None` for any other error.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:").max_size(1).build()?;
    /// use cenote_tower::Problem;
    ///
    /// db.pool().breaker().trip();
    /// let error = sqlx::query("SELECT 1").execute(&db).await.unwrap_err();
    /// assert_eq!(Problem::of_sqlx(&error).expect("nothing to lend").status(), 503);
    /// assert!(Problem::of_sqlx(&sqlx::Error::RowNotFound).is_none());
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "sqlx")]
    pub fn of_sqlx(error: &(dyn Error + 'static)) -> Option<Self> {
        let found = causes(error).find_map(|cause| {
            let error = cause.downcast_ref().and_then(cenote_sqlx::pool_error)?;
            match error {
                BindError::Acquire(acquire) => busy(acquire),
                _ => None,
            }
        });
        let found = found.map(|busy| busy.with_report_of(error));
        found.or_else(|| Self::of::<sqlx::Error>(error))
    }

    fn with_report_of(self, error: &(dyn Error + 'static)) -> Self {
        let report = story(error, &self.holders);
        self.with_report(report)
    }

    /// Returns the status of the response.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the text for the client.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the text for the log: the error, the holders of the resources, and the causes.
    /// Without a report it is the text for the client.
    pub fn report(&self) -> &str {
        self.report.as_deref().unwrap_or(&self.detail)
    }

    /// Returns the holders of the resources at a timeout, grouped by call site, the longest first.
    pub fn holders(&self) -> &[HolderGroup] {
        &self.holders
    }

    /// Returns the `Retry-After` of this problem, if the error or the caller set one.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns the response. The problem is among its extensions, where
    /// [`ProblemLayer`](crate::ProblemLayer) finds it.
    pub fn to_response(&self) -> Response<Text> {
        let Self { status, detail, .. } = self;
        let title = status.canonical_reason().unwrap_or("Error");
        let body = format!(
            r#"{{"type":"about:blank","title":{},"status":{},"detail":{}}}"#,
            quoted(title),
            status.as_u16(),
            quoted(detail)
        );
        let mut response = Response::new(Text::from(body));
        *response.status_mut() = *status;
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        if *status == StatusCode::SERVICE_UNAVAILABLE {
            let after = self.retry_after.unwrap_or(RETRY_AFTER_DEFAULT);
            response.headers_mut().insert(RETRY_AFTER, seconds(after));
        }
        response.extensions_mut().insert(self.clone());
        response
    }
}

/// Rounds up to whole seconds, at least one: after zero seconds all clients would return at once.
pub(crate) fn seconds(after: Duration) -> HeaderValue {
    let up = after.as_secs() + u64::from(after.subsec_nanos() > 0);
    HeaderValue::from(up.max(1))
}

/// Returns the 503 for the three errors that may pass with time.
fn busy<E>(error: &AcquireError<E>) -> Option<Problem> {
    let mut busy = Problem::new(StatusCode::SERVICE_UNAVAILABLE, BUSY);
    match error {
        AcquireError::TimedOut(seen) => busy.holders = seen.holders().into(),
        AcquireError::Unavailable(unavailable) => busy.retry_after = unavailable.retry_after,
        AcquireError::Rejected { .. } => {}
        _ => return None,
    }
    Some(busy)
}

/// Returns the error, its cause, the cause of that, and so on.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |&cause| cause.source())
}

/// Returns the report of an error: its text, every holder and every cause. A cause that is part of
/// the text above it is left out.
fn story(error: &(dyn Error + 'static), holders: &[HolderGroup]) -> String {
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
        Self::of_sqlx(&error).unwrap_or_else(|| Self::internal(&error))
    }
}

#[cfg(feature = "axum")]
impl axum::response::IntoResponse for Problem {
    fn into_response(self) -> axum::response::Response {
        self.to_response().map(axum::body::Body::new)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.detail)
    }
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Problem")
            .field("status", &self.status)
            .field("detail", &self.detail)
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}

impl Error for Problem {}
