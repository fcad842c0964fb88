//! The lines that a `ProblemLayer` writes.

use std::fmt;
use std::sync::{Arc, Mutex};

use cenote_tower::{Problem, ProblemLayer, Text};
use http::{Request, Response};
use tower::{Layer, ServiceExt, service_fn};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::reports::reporting;

/// Keeps each line as its level and its fields.
#[derive(Clone, Default)]
struct Keeper(Arc<Mutex<Vec<(Level, String)>>>);

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "cenote" && metadata.is_event()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Written(String::new());
        event.record(&mut text);
        let line = (*event.metadata().level(), text.0);
        self.0.lock().expect("no test panics here").push(line);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Written(String);

impl Visit for Written {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0 += &format!("{field}={value:?} ");
    }
}

/// Sends a request to a service that fails like this, and returns the lines.
async fn lines_of(layer: ProblemLayer, problem: Problem) -> Vec<(Level, String)> {
    lines_of_many(layer, problem, 1).await
}

async fn lines_of_many(
    layer: ProblemLayer,
    problem: Problem,
    count: usize,
) -> Vec<(Level, String)> {
    let keeper = Keeper::default();
    let _guard = tracing::subscriber::set_default(keeper.clone());
    let service = layer.layer(service_fn(move |_: Request<()>| {
        let problem = problem.clone();
        async move { Err::<Response<Text>, _>(problem) }
    }));
    for _ in 0..count {
        let request = Request::put("/orders/7").body(()).expect("it is valid");
        assert!(service.clone().oneshot(request).await.is_ok());
    }
    let lines = keeper.0.lock().expect("no test panics here");
    lines.clone()
}

fn busy() -> Problem {
    let status = http::StatusCode::SERVICE_UNAVAILABLE;
    Problem::new(status, "busy").with_report("10 of 10 in use")
}

#[tokio::test]
async fn a_503_is_a_warning_with_the_method_and_the_route() {
    let lines = lines_of(ProblemLayer::new(), busy()).await;

    let [(level, line)] = &lines[..] else {
        panic!("one line: {lines:?}");
    };
    assert_eq!(*level, Level::WARN);
    for part in [
        "message=PUT /orders/7: 10 of 10 in use ",
        "method=PUT ",
        "route=\"/orders/7\" ",
        "status=503 ",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
}

#[tokio::test]
async fn a_500_is_an_error() {
    let problem = Problem::internal(&std::io::Error::other("disk on fire"));

    let lines = lines_of(ProblemLayer::new(), problem).await;

    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].0, Level::ERROR);
    assert!(lines[0].1.contains("disk on fire"), "{lines:?}");
}

#[tokio::test]
async fn problems_of_the_client_are_not_logged() {
    let problem = Problem::new(http::StatusCode::NOT_FOUND, "no such order");

    assert_eq!(lines_of(ProblemLayer::new(), problem).await, []);
}

#[tokio::test]
async fn a_function_for_problems_is_called_beside_the_log_and_without_it() {
    let (layer, told) = reporting();
    assert_eq!(lines_of(layer, busy()).await.len(), 1);
    assert!(told.try_recv().is_ok());

    let (layer, told) = reporting();
    assert_eq!(lines_of(layer.without_log(), busy()).await, []);
    assert!(told.try_recv().is_ok());
}

#[tokio::test]
async fn a_storm_writes_few_lines() {
    let lines = lines_of_many(ProblemLayer::new(), busy(), 1000).await;

    // A second may end in between, on a busy machine more than one.
    assert!((1..=30).contains(&lines.len()), "{} lines", lines.len());
}
