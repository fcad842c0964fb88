//! The responses to errors of services.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use cenote::breaker::ConsecutiveFailures;
use cenote::{AcquireError, Manager, Pool};
use cenote_tower::{Problem, ProblemLayer, Text};
use http::{Request, Response};
use tower::{Layer, ServiceExt, service_fn};

use crate::reports::reporting;

type BoxError = Box<dyn Error + Send + Sync>;

#[derive(Debug)]
struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the backend said no, password hunter2")
    }
}

impl Error for Refused {}

/// A manager with its own error type, which always fails.
struct Refusing;

impl Manager for Refusing {
    type Resource = ();
    type Error = Refused;

    async fn open(&self) -> Result<(), Refused> {
        Err(Refused)
    }
}

fn refusing() -> Pool<Refusing> {
    let strategy =
        ConsecutiveFailures::new(1).recover_after(Duration::from_secs(40), Duration::from_secs(40));
    Pool::builder(Refusing).breaker(strategy).build().unwrap()
}

/// Calls a service that fails with the error of a pool whose breaker has tripped.
async fn call(layer: ProblemLayer) -> Result<Response<cenote_tower::AnswerBody<Text>>, BoxError> {
    let pool = refusing();
    assert!(matches!(
        pool.acquire().await,
        Err(AcquireError::Open { .. })
    ));
    let failing = service_fn(|_: Request<()>| async {
        drop(pool.acquire().await?);
        Ok::<_, BoxError>(Response::new(Text::default()))
    });
    layer.layer(failing).oneshot(Request::new(())).await
}

#[tokio::test]
async fn a_tripped_breaker_sets_retry_after() {
    let response = call(ProblemLayer::new().knows::<Refused>()).await.unwrap();

    assert_eq!(response.status(), 503);
    let after: u64 = response.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((20..=90).contains(&after), "{after}");
}

#[tokio::test]
async fn an_unknown_error_passes_unchanged() {
    let error = call(ProblemLayer::new()).await.unwrap_err();

    assert!(error.is::<AcquireError<Refused>>());
}

#[tokio::test]
async fn a_failed_open_is_a_503_that_does_not_show_the_cause() {
    let error = refusing().acquire().await.unwrap_err();

    let problem = Problem::from(error);

    let response = problem.to_response();
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key("retry-after"));
    assert!(problem.report().contains("hunter2"));
    assert!(!response.body().as_str().contains("hunter2"));
}

#[tokio::test]
async fn a_problem_is_reported_once_and_only_from_500_up() {
    let (layer, told) = reporting();
    for status in [404, 500, 503] {
        let failing = service_fn(move |_: Request<()>| async move {
            let status = http::StatusCode::from_u16(status).unwrap();
            Err::<Response<Text>, _>(Problem::new(status, "no"))
        });
        let stacked = layer.layer(layer.layer(failing));
        assert_eq!(
            stacked.oneshot(Request::new(())).await.unwrap().status(),
            status
        );
    }

    let reported = told.try_iter().map(|problem| problem.status().as_u16());
    assert_eq!(reported.collect::<Vec<_>>(), [500, 503]);
}

#[test]
fn an_error_is_found_among_the_causes_of_another() {
    #[derive(Debug)]
    struct Outer(AcquireError<Refused>);
    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the order could not be placed")
        }
    }
    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }
    let busy = |waiting| AcquireError::Rejected {
        pool: "p".into(),
        waiting,
    };

    let problem = Problem::of::<Refused>(&Outer(busy(7))).unwrap();

    assert_eq!(problem.status(), 503);
    assert!(
        problem
            .report()
            .starts_with("the order could not be placed\ncause: pool `p` has 7")
    );
    assert!(Problem::of::<Refused>(&std::io::Error::other("else")).is_none());
}

#[tokio::test]
async fn a_cause_is_in_the_report_once() {
    let error = refusing().acquire().await.unwrap_err();
    assert!(
        error.source().is_some(),
        "the error has its cause as data too"
    );

    let problem = Problem::from(error);

    let report = problem.report();
    assert_eq!(report.matches("hunter2").count(), 1, "{report}");
}
