//! A failed request: a response in `application/problem+json` for the client, and a report for the
//! log.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cenote::status::HolderGroup;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, Response, StatusCode};

use crate::asked::Asked;
use crate::convert::story;
use crate::estimate::Line;
use crate::retry_after::{RETRY_AFTER_DEFAULT, RetryAfter};
use crate::text::{Text, quoted};

const FAILED: &str = "the request could not be served";

/// The response to a request that failed. The client gets the status and the detail. The report
/// goes to the log: see [`ProblemLayer::on_problem`](crate::ProblemLayer::on_problem).
///
/// `?` makes a problem from an error:
///
/// | error | status |
/// |---|---|
/// | the pool has nothing to lend: timeout, failed open, breaker tripped, too many waiters | 503 with `Retry-After` |
/// | the same, and a retry cannot help: wrong password, unknown user or database | 503 without it |
/// | `sqlx::Error::RowNotFound` | 404 |
/// | a violated unique or foreign key | 409 |
/// | a conflict with another transaction: serialization failure, deadlock | 503 with `Retry-After` |
/// | any other | 500 without details |
///
/// [`ProblemLayer::sqlx_errors`](crate::ProblemLayer::sqlx_errors) changes the statuses of sqlx's
/// errors in one place. With the feature `axum` a problem is a response, so that a handler can
/// return it as its error.
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
/// assert!(response.headers().contains_key("retry-after"));
/// assert!(!response.body().as_str().contains("rooms"), "the client learns nothing about the pool");
/// assert!(problem.report().contains("rooms") && problem.holders()[0].count == 1);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Problem {
    status: StatusCode,
    detail: Cow<'static, str>,
    pub(crate) retry_after: RetryAfter,
    report: Option<Arc<str>>,
    pub(crate) holders: Arc<[HolderGroup]>,
    /// The line of the pool that had nothing to lend.
    pub(crate) line: Option<Line>,
    /// The error that it was made from.
    #[cfg(feature = "sqlx")]
    pub(crate) error: Option<Arc<sqlx::Error>>,
    asked: Option<Asked>,
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
            retry_after: RetryAfter::Unset,
            report: None,
            holders: Arc::default(),
            line: None,
            #[cfg(feature = "sqlx")]
            error: None,
            asked: None,
        }
    }

    /// Sets the `Retry-After` of a 503. Without it [`ProblemLayer`](crate::ProblemLayer) estimates
    /// it, and outside of that layer it is one to three seconds.
    pub fn with_retry_after(mut self, after: Duration) -> Self {
        self.retry_after = RetryAfter::Exactly(after);
        self
    }

    /// Leaves `Retry-After` out of a 503, because a retry cannot help.
    ///
    /// ```
    /// # use cenote_tower::Problem;
    /// let problem = Problem::new(http::StatusCode::SERVICE_UNAVAILABLE, "closed for good");
    /// assert!(problem.to_response().headers().contains_key("retry-after"));
    /// let problem = problem.without_retry_after();
    /// assert!(!problem.to_response().headers().contains_key("retry-after"));
    /// ```
    pub fn without_retry_after(mut self) -> Self {
        self.retry_after = RetryAfter::Never;
        self
    }

    /// Sets an estimate of the `Retry-After`, which is spread over the clients.
    pub(crate) fn with_estimate(mut self, after: Duration) -> Self {
        self.retry_after = RetryAfter::About(after);
        self
    }

    #[cfg(feature = "sqlx")]
    pub(crate) fn with_error(mut self, error: Arc<sqlx::Error>) -> Self {
        self.error = Some(error);
        self
    }

    #[cfg(feature = "sqlx")]
    pub(crate) fn has_report(&self) -> bool {
        self.report.is_some()
    }

    /// Notes the request that it belongs to, also in the report.
    pub(crate) fn with_request(mut self, asked: Asked) -> Self {
        if self.asked.is_some() {
            return self;
        }
        self.report = Some(format!("{asked}: {}", self.report()).into());
        self.asked = Some(asked);
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

    /// Returns the status of the response.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the text for the client.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the text for the log: the request, the error, the holders of the resources, and the
    /// causes. Without a report it is the text for the client.
    pub fn report(&self) -> &str {
        self.report.as_deref().unwrap_or(&self.detail)
    }

    /// Returns the holders of the resources at a timeout, grouped by call site, the longest first.
    pub fn holders(&self) -> &[HolderGroup] {
        &self.holders
    }

    /// Returns the `Retry-After` of this problem, if the error or the caller set one.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after.duration()
    }

    /// Returns the method of the request, if a [`ProblemLayer`](crate::ProblemLayer) noted it.
    pub fn method(&self) -> Option<&Method> {
        self.asked.as_ref().map(Asked::method)
    }

    /// Returns the route that axum matched, or else the path of the request, if a
    /// [`ProblemLayer`](crate::ProblemLayer) noted it.
    pub fn route(&self) -> Option<&str> {
        self.asked.as_ref().map(Asked::route)
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
            let after = self.retry_after.header(RETRY_AFTER_DEFAULT);
            let headers = response.headers_mut();
            after.map(|after| headers.insert(RETRY_AFTER, after));
        }
        response.extensions_mut().insert(self.clone());
        response
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
