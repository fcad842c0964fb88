//! What a client is told, and what the operator is told: an answer in `application/problem+json`, with a report that stays inside.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::iter::successors;
use std::sync::Arc;
use std::time::Duration;

use cenote::{AcquireError, BindError, HolderGroup};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use crate::text::{Text, quoted};

/// Told to clients where nothing better is known.
pub(crate) const RETRY_AFTER_DEFAULT: Duration = Duration::from_secs(1);

const BUSY: &str = "the service is busy, try again later";
const FAILED: &str = "the request could not be served";

/// An answer to a request that failed. The client gets status and detail; the report is for the log, see
/// [`ProblemLayer::on_problem`](crate::ProblemLayer::on_problem).
///
/// A pool that has nothing to lend (timed out, breaker inactive, too many waiting) becomes a 503 with `Retry-After`. Whatever else comes by `?` is a
/// 500 that says nothing. With the feature `axum` it is a response, so that a handler can return it as its error.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use cenote_tower::Problem;
///
/// let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(())).name("rooms").max_size(1).build()?;
/// let _held = pool.acquire().await?;
/// let problem = Problem::from(pool.acquire_timeout(Duration::from_millis(5)).await.unwrap_err());
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
    /// An answer of your own: the client sees `detail`.
    pub fn new(status: StatusCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            detail: detail.into(),
            retry_after: None,
            report: None,
            holders: Arc::default(),
        }
    }

    /// When a 503 says to come back. A pool's breaker knows it sometimes; the rest is said by [`ProblemLayer`](crate::ProblemLayer), or is a second.
    pub fn with_retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// What the log is told, and the client is not.
    pub fn with_report(mut self, report: impl Into<Arc<str>>) -> Self {
        self.report = Some(report.into());
        self
    }

    /// For an error that the client cannot help: a 500, with the error and its causes in the report.
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

    /// Where the program is put together wrongly: a 500 that says how to mend it, to the client only in a debug build.
    #[cfg(all(feature = "axum", feature = "sqlx"))]
    pub(crate) fn miswired(report: &'static str) -> Self {
        let detail = if cfg!(debug_assertions) {
            report
        } else {
            FAILED
        };
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail).with_report(report)
    }

    /// The 503 for an error that means "nothing to lend now", however deep among its causes. `None` for any other: it is not this crate's to judge.
    ///
    /// Looks for errors of pools whose manager fails with `E`.
    pub fn of<E: Error + 'static>(error: &(dyn Error + 'static)) -> Option<Self> {
        let found = causes(error).find_map(|cause| match cause.downcast_ref() {
            Some(BindError::<E>::Acquire(acquire)) => busy(acquire),
            _ => busy::<E>(cause.downcast_ref()?),
        });
        found.map(|busy| busy.with_report_of(error))
    }

    /// The 503 for an error of sqlx that means "nothing to lend now". `None` for any other, to be answered by you.
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

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// What the client is told.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// What the log is told: the error, who holds what, and the causes. The detail, if there is no more to say.
    pub fn report(&self) -> &str {
        self.report.as_deref().unwrap_or(&self.detail)
    }

    /// Who held the resources, grouped by call site, the longest first, if time ran out.
    pub fn holders(&self) -> &[HolderGroup] {
        &self.holders
    }

    /// When the client may come back, if the error said so.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The answer. It carries the problem among its extensions, where [`ProblemLayer`](crate::ProblemLayer) finds it.
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

/// Whole seconds, and at least one: zero would call everybody back at once.
pub(crate) fn seconds(after: Duration) -> HeaderValue {
    let up = after.as_secs() + u64::from(after.subsec_nanos() > 0);
    HeaderValue::from(up.max(1))
}

/// The three that time may mend.
fn busy<E>(error: &AcquireError<E>) -> Option<Problem> {
    let mut busy = Problem::new(StatusCode::SERVICE_UNAVAILABLE, BUSY);
    match error {
        AcquireError::TimedOut(seen) => busy.holders = seen.holders().into(),
        AcquireError::Unavailable { retry_after, .. } => busy.retry_after = *retry_after,
        AcquireError::Rejected { .. } => {}
        _ => return None,
    }
    Some(busy)
}

/// The error, its cause, the cause of that.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |&cause| cause.source())
}

/// An error with all that is known: its text, every holder, every cause. A cause that the text of
/// an error above it contains is not repeated.
fn story(error: &(dyn Error + 'static), holders: &[HolderGroup]) -> String {
    let mut story = error.to_string();
    let held = holders.iter().map(|group| format!("\nheld: {group}"));
    story.extend(held);
    for cause in causes(error).skip(1).map(ToString::to_string) {
        // Errors of pools tell their causes in one line.
        if !story.contains(&cause) && !story.contains(&cause.replace('\n', " ")) {
            story.push_str("\ncause: ");
            story.push_str(&cause);
        }
    }
    story
}

impl<E: Error + 'static> From<AcquireError<E>> for Problem {
    fn from(error: AcquireError<E>) -> Self {
        Self::of::<E>(&error).unwrap_or_else(|| Self::internal(&error))
    }
}

impl<E: Error + 'static> From<BindError<E>> for Problem {
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
