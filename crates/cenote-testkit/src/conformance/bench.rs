//! The manager on the bench: its calls with a time limit and with texts for their failures.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use cenote::{LeaseEnd, Manager, Pool};
use tokio::time::{sleep, timeout};

use super::Given;

/// How often the backend is asked again.
const PAUSE: Duration = Duration::from_millis(10);

/// What a check returns: the text says what was seen.
pub(super) type Outcome<T = ()> = Result<T, String>;

pub(super) struct Bench<M: Manager + 'static> {
    /// The suite also calls the manager of this pool directly.
    pub(super) pool: Pool<M>,
    pub(super) given: Given<M::Resource>,
    limit: Duration,
    /// How many resources the backend had before the suite.
    before: usize,
}

impl<M: Manager<Resource: 'static> + 'static> Bench<M> {
    pub(super) async fn new(manager: M, limit: Duration, given: Given<M::Resource>) -> Self {
        let pool = Pool::builder(manager)
            .name("conformance")
            .max_size(1)
            .acquire_timeout(Some(limit))
            .open_timeout(Some(limit))
            // Each resource is checked before it is lent, so that a killed one cannot come through.
            .check_after_idle(Some(Duration::ZERO))
            .build()
            .expect("a limit is longer than zero and shorter than years");
        let before = match &given.count {
            Some(count) => count().await,
            None => 0,
        };
        Self {
            pool,
            given,
            limit,
            before,
        }
    }

    pub(super) fn manager(&self) -> &M {
        self.pool.manager()
    }

    /// Awaits a call of the manager, for no longer than the limit.
    pub(super) async fn within<T>(&self, what: &str, call: impl Future<Output = T>) -> Outcome<T> {
        let ended = timeout(self.limit, call).await;
        ended.map_err(|_| format!("{what} has not ended within {:?}", self.limit))
    }

    pub(super) async fn open(&self) -> Outcome<M::Resource> {
        let opened = self.within("`open`", self.manager().open()).await?;
        opened.map_err(|error| format!("`open` failed: {}", shown(error)))
    }

    /// Returns the error of `check` as a text, or that it has not ended.
    pub(super) async fn check(
        &self,
        what: &str,
        resource: &mut M::Resource,
    ) -> Outcome<Result<(), String>> {
        let what = format!("`check` of {what}");
        let checked = self.within(&what, self.manager().check(resource)).await?;
        Ok(checked.map_err(shown))
    }

    pub(super) async fn clean(&self, resource: &mut M::Resource) -> Outcome {
        let cleaned = self
            .within("`clean`", self.manager().clean(resource))
            .await?;
        cleaned.map_err(|error| format!("`clean` failed: {}", shown(error)))
    }

    pub(super) async fn close(&self, what: &str, resource: M::Resource) -> Outcome {
        let what = format!("`close` of {what}");
        let closed = self.within(&what, self.manager().close(resource)).await?;
        closed.map_err(|error| format!("{what} failed: {}", shown(error)))
    }

    /// Closes a resource of which no more is expected. The error of its close is no failure.
    pub(super) async fn give_up(&self, what: &str, resource: M::Resource) -> Outcome {
        let what = format!("`close` of {what}");
        let closed = self.within(&what, self.manager().close(resource)).await?;
        drop(closed);
        Ok(())
    }

    pub(super) fn is_broken(&self, resource: &mut M::Resource) -> bool {
        self.manager().is_broken(resource, LeaseEnd::Returned)
    }

    /// Waits until the backend has no more resources than before.
    pub(super) async fn nothing_is_left(&self, after: &str) -> Outcome {
        let Some(count) = &self.given.count else {
            return Ok(());
        };
        let mut left = 0;
        let gone = timeout(self.limit, async {
            loop {
                left = count().await.saturating_sub(self.before);
                if left == 0 {
                    break;
                }
                sleep(PAUSE).await;
            }
        });
        let gone = gone.await.is_ok();
        let limit = self.limit;
        if gone {
            return Ok(());
        }
        Err(format!(
            "the backend has {left} more than before the suite, {limit:?} after {after}"
        ))
    }
}

/// Returns the text of an error and of its causes.
pub(super) fn shown<E: Into<Box<dyn Error + Send + Sync>>>(error: E) -> String {
    let error = error.into();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
