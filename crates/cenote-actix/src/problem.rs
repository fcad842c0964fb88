//! A failed request: a response in `application/problem+json` for the client, and a report for the
//! log.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError};
use cenote::AcquireError;
use cenote::scope::BindError;

/// The error of a handler. The client gets its status and its detail, and the report is for the
/// log.
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
/// | any other, also that of a closed pool | 500 without details |
///
/// It is the [problem](cenote_tower::Problem) of cenote-tower, with the status of actix-web.
/// `response.error()` has it, and actix-web's `Logger` writes it at the level `debug`.
///
/// ```
/// # #[actix_web::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use actix_web::ResponseError;
/// use cenote_actix::Problem;
///
/// let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(())).name("rooms").max_size(1).build()?;
/// let _held = pool.acquire().await?;
/// let problem = Problem::from(pool.acquire_within(Duration::from_millis(5)).await.unwrap_err());
///
/// let response = problem.error_response();
/// assert_eq!(response.status(), 503);
/// assert!(response.headers().contains_key("retry-after"));
/// assert!(!problem.to_string().contains("rooms"), "the client learns nothing about the pool");
/// assert!(problem.report().contains("rooms"));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Problem(cenote_tower::Problem);

impl Problem {
    /// Creates a problem with a text for the client.
    ///
    /// ```
    /// use actix_web::ResponseError;
    /// use actix_web::http::StatusCode;
    /// use cenote_actix::Problem;
    ///
    /// let problem = Problem::new(StatusCode::CONFLICT, "no chairs left");
    /// assert_eq!((problem.status_code(), problem.report()), (StatusCode::CONFLICT, "no chairs left"));
    /// ```
    pub fn new(status: StatusCode, detail: impl Into<Cow<'static, str>>) -> Self {
        let status = http::StatusCode::from_u16(status.as_u16());
        let status = status.expect("both types allow 100 to 999");
        Self(cenote_tower::Problem::new(status, detail))
    }

    /// Sets the `Retry-After` of a 503. Without it, it is one to three seconds, or what the breaker
    /// of the pool says.
    pub fn with_retry_after(self, after: Duration) -> Self {
        Self(self.0.with_retry_after(after))
    }

    /// Returns the text for the log: the error, the holders of the resources, and the causes.
    /// Without a report it is the text for the client.
    pub fn report(&self) -> &str {
        self.0.report()
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        let status = StatusCode::from_u16(self.0.status().as_u16());
        status.expect("both types allow 100 to 999")
    }

    fn error_response(&self) -> HttpResponse {
        let (parts, body) = self.0.to_response().into_parts();
        let mut response = HttpResponse::build(self.status_code());
        for (name, value) in &parts.headers {
            response.insert_header((name.as_str(), value.as_bytes()));
        }
        response.body(body.as_str().to_owned())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Problem {}

impl From<cenote_tower::Problem> for Problem {
    fn from(problem: cenote_tower::Problem) -> Self {
        Self(problem)
    }
}

impl<E: fmt::Debug + 'static> From<AcquireError<E>> for Problem {
    fn from(error: AcquireError<E>) -> Self {
        Self(error.into())
    }
}

impl<E: fmt::Debug + 'static> From<BindError<E>> for Problem {
    fn from(error: BindError<E>) -> Self {
        Self(error.into())
    }
}

#[cfg(feature = "sqlx")]
impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        Self(error.into())
    }
}
