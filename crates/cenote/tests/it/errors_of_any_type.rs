//! The error of a manager may have any type that converts into a boxed error. Its text and its
//! causes reach the caller, and an error type that implements `Error` is reached by its type.

use std::error::Error;
use std::fmt::{self, Debug, Display};
use std::io;

use cenote::error::Cause;
use cenote::{AcquireError, Manager, OpenError, Pool, WarmError};

use crate::support::text::chain;

type Boxed = Box<dyn Error + Send + Sync>;

/// A type like `anyhow::Error`: it does not implement `Error`, but converts into a boxed error.
struct Report(Boxed);

impl Report {
    /// An error with another one as its cause.
    fn new() -> Self {
        Self(Box::new(Refused(io::Error::other("no route"))))
    }
}

impl Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.0, f)
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Report {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl From<Report> for Boxed {
    fn from(report: Report) -> Self {
        report.0
    }
}

#[derive(Debug)]
struct Refused(io::Error);

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("refused")
    }
}

impl Error for Refused {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

/// Opens nothing, and fails with the error that `fail` makes.
struct Failing<E>(fn() -> E);

impl<E: Into<Boxed> + Debug + Send + 'static> Manager for Failing<E> {
    type Resource = ();
    type Error = E;

    async fn open(&self) -> Result<(), E> {
        Err((self.0)())
    }
}

fn pool<E: Into<Boxed> + Debug + Send + 'static>(fail: fn() -> E) -> Pool<Failing<E>> {
    let builder = Pool::builder(Failing(fail)).name("orders");
    builder.build().expect("the settings are valid")
}

/// Acquires and warms as a user does, with `?` into a boxed error.
async fn fail<E: Into<Boxed> + Debug + Send + 'static>(pool: &Pool<Failing<E>>) -> [Boxed; 2] {
    async fn acquire<M: Manager + 'static>(pool: &Pool<M>) -> Result<(), Boxed> {
        drop(pool.acquire().await?);
        Ok(())
    }
    async fn warm<M: Manager + 'static>(pool: &Pool<M>) -> Result<(), Boxed> {
        pool.warm().await?;
        Ok(())
    }
    [
        acquire(pool).await.expect_err("nothing can be opened"),
        warm(pool).await.expect_err("nothing can be opened"),
    ]
}

#[track_caller]
fn assert_texts(errors: &[Boxed; 2], texts: &[&str]) {
    let [acquired, warmed] = errors.each_ref().map(|error| chain(&**error));
    let cause = texts.join(": ");
    let acquire = format!("pool `orders`: opening failed: {cause}");
    let warm = format!("the pool could not be warmed up: opening failed: {cause}");
    assert_eq!(acquired[0], acquire);
    assert_eq!(warmed[0], warm);
    assert_eq!(acquired[1..], *texts);
    assert_eq!(warmed[1..], *texts);
}

#[tokio::test(start_paused = true)]
async fn an_error_may_be_a_string() {
    let errors = fail(&pool(|| String::from("out of sockets"))).await;

    assert_texts(&errors, &["out of sockets"]);
    assert!(errors[0].is::<AcquireError<String>>());
    assert!(errors[1].is::<WarmError<String>>());
}

#[tokio::test(start_paused = true)]
async fn an_error_may_be_a_boxed_error() {
    let errors = fail(&pool(|| Report::new().0)).await;

    assert_texts(&errors, &["refused", "no route"]);
    let cause = errors[0].source().unwrap();
    assert!(cause.is::<Refused>(), "the box itself is no cause");
}

#[tokio::test(start_paused = true)]
async fn an_error_may_be_a_type_that_only_converts_into_a_boxed_error() {
    let errors = fail(&pool(Report::new)).await;

    assert_texts(&errors, &["refused", "no route"]);
    let cause = errors[0].source().unwrap();
    assert!(cause.is::<Refused>());
}

#[tokio::test(start_paused = true)]
async fn an_acquire_error_converts_into_a_type_that_takes_any_error() {
    async fn use_it(pool: &Pool<Failing<Report>>) -> Result<(), Report> {
        drop(pool.acquire().await?);
        Ok(())
    }

    let error = use_it(&pool(Report::new)).await.unwrap_err();

    assert!(error.0.is::<AcquireError<Report>>());
    assert_eq!(chain(&*error.0).last().unwrap(), "no route");
}

#[tokio::test(start_paused = true)]
async fn the_cause_dereferences_to_an_error_that_implements_error() {
    let pool = pool(|| io::Error::from(io::ErrorKind::NotConnected));

    let error = pool.acquire().await.unwrap_err();

    let AcquireError::Open {
        error: OpenError::Failed(cause),
        ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(cause.kind(), io::ErrorKind::NotConnected);
    assert!(cause.as_error().is::<io::Error>());
}

#[tokio::test(start_paused = true)]
async fn the_cause_of_any_type_is_seen_as_an_error() {
    let error = pool(|| "down".to_owned()).acquire().await.unwrap_err();

    match error {
        AcquireError::Open {
            error: OpenError::Failed(cause),
            ..
        } => assert_eq!(cause.as_error().to_string(), "down"),
        other => panic!("{other}"),
    }
}

#[test]
fn clones_of_an_open_error_share_one_cause() {
    let error = OpenError::Failed(Cause::from(io::Error::from(io::ErrorKind::BrokenPipe)));

    let (OpenError::Failed(first), OpenError::Failed(second)) = (error.clone(), error) else {
        panic!("the clone is another variant");
    };

    assert!(std::ptr::eq(&raw const *first, &raw const *second));
    assert_eq!(format!("{first:?}"), format!("{:?}", *second));
}

#[test]
fn errors_of_any_type_can_be_sent_anywhere() {
    fn assert_error<T: Error + Send + Sync + 'static>() {}

    assert_error::<AcquireError<String>>();
    assert_error::<AcquireError<Boxed>>();
    assert_error::<AcquireError<Report>>();
    assert_error::<OpenError<Report>>();
    assert_error::<WarmError<Report>>();
}
