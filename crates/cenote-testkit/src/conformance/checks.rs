//! The checks, in the order in which they run.

use std::future::Future;

use cenote::{Lease, Manager};

use super::bench::{Bench, Outcome, shown};
use super::{Dirt, Failure, OnResource, cut};

/// A call on a real server is polled a few times. A call that is polled so often never ends.
const MOST_POLLS: usize = 1000;

/// Runs all checks and returns those that failed.
pub(super) async fn run<M>(bench: Bench<M>) -> Vec<Failure>
where
    M: Manager<Resource: 'static> + 'static,
{
    let mut failures = Vec::new();
    let mut note = |check, outcome: Outcome| {
        let passed = outcome.is_ok();
        failures.extend(outcome.err().map(|text| Failure { check, text }));
        passed
    };
    // Without a good resource the other checks would only repeat this failure.
    if note("opens", opens(&bench).await) {
        if let Some(kill) = &bench.given.kill {
            note("detects death", detects_death(&bench, kill).await);
        }
        if let Some(dirt) = &bench.given.dirty {
            note("cleans", cleans(&bench, dirt).await);
        }
        let ended = end_pool(&bench).await;
        note("survives cancellation", survives(&bench).await);
        note("closes", ended.and(closes(&bench).await));
    }
    failures
}

async fn opens<M>(bench: &Bench<M>) -> Outcome
where
    M: Manager<Resource: 'static> + 'static,
{
    let mut resource = bench.open().await?;
    must_be_fit(bench, "a new resource", &mut resource).await?;
    bench.give_up("a new resource", resource).await
}

async fn detects_death<M>(bench: &Bench<M>, kill: &OnResource<M::Resource, ()>) -> Outcome
where
    M: Manager<Resource: 'static> + 'static,
{
    let (mut killed, mut other) = (bench.open().await?, bench.open().await?);
    kill(&mut killed).await;
    if !bench.is_broken(&mut killed) {
        let checked = bench.check("a killed resource", &mut killed).await?;
        if checked.is_ok() {
            return Err("neither `is_broken` nor `check` notices a killed resource".to_owned());
        }
    }
    must_be_fit(bench, "a resource beside a killed one", &mut other).await?;
    bench.give_up("a killed resource", killed).await?;
    bench.give_up("a resource beside it", other).await?;

    let mut lease = acquire(bench, "at first").await?;
    let dead = Lease::id(&lease);
    kill(&mut lease).await;
    drop(lease);
    let lease = acquire(bench, "after a resource was killed").await?;
    if Lease::id(&lease) == dead {
        return Err("a pool lends a killed resource again".to_owned());
    }
    Ok(())
}

async fn cleans<M>(bench: &Bench<M>, dirt: &Dirt<M::Resource>) -> Outcome
where
    M: Manager<Resource: 'static> + 'static,
{
    let mut resource = bench.open().await?;
    if (dirt.is_there)(&mut resource).await {
        return Err("a new resource is dirty".to_owned());
    }
    (dirt.make)(&mut resource).await;
    if !(dirt.is_there)(&mut resource).await {
        return Err("the closures of the suite disagree: no dirt is seen where it was made".into());
    }
    // A manager may also give up a dirty resource.
    if !bench.is_broken(&mut resource) {
        if !bench.manager().needs_cleaning(&mut resource) {
            return Err(
                "neither `needs_cleaning` nor `is_broken` notices a dirty resource".to_owned(),
            );
        }
        bench.clean(&mut resource).await?;
        if (dirt.is_there)(&mut resource).await {
            return Err("`clean` leaves a resource dirty".to_owned());
        }
        must_be_fit(bench, "a cleaned resource", &mut resource).await?;
    }
    bench.give_up("a resource that was dirty", resource).await?;

    let mut lease = acquire(bench, "at first").await?;
    (dirt.make)(&mut lease).await;
    Lease::release(lease).await;
    let mut lease = acquire(bench, "after a resource was dirty").await?;
    if (dirt.is_there)(&mut lease).await {
        return Err("a pool lends a dirty resource".to_owned());
    }
    Ok(())
}

/// Each future of the manager is dropped before its first poll, at its first await, at its second,
/// and so on until it ends.
async fn survives<M>(bench: &Bench<M>) -> Outcome
where
    M: Manager<Resource: 'static> + 'static,
{
    let manager = bench.manager();
    for polls in 0..=MOST_POLLS {
        let opened = cut_at(bench, "open", polls, manager.open()).await?;
        still_opens(bench, "open", polls).await?;
        if let Some(opened) = opened {
            let resource = opened.map_err(|error| format!("`open` failed: {}", shown(error)))?;
            bench.give_up("a resource", resource).await?;
            break;
        }
    }
    for polls in 0..=MOST_POLLS {
        let mut resource = bench.open().await?;
        let ended = cut_at(bench, "check", polls, manager.check(&mut resource)).await?;
        end(bench, "check", polls, resource).await?;
        if ended.is_some() {
            break;
        }
    }
    for polls in 0..=MOST_POLLS {
        let Some(dirt) = &bench.given.dirty else {
            break;
        };
        let mut resource = bench.open().await?;
        (dirt.make)(&mut resource).await;
        let ended = cut_at(bench, "clean", polls, manager.clean(&mut resource)).await?;
        end(bench, "clean", polls, resource).await?;
        if ended.is_some() {
            break;
        }
    }
    for polls in 0..=MOST_POLLS {
        let resource = bench.open().await?;
        let ended = cut_at(bench, "close", polls, manager.close(resource)).await?;
        still_opens(bench, "close", polls).await?;
        if ended.is_some() {
            break;
        }
    }
    bench.nothing_is_left("calls that were dropped").await
}

async fn closes<M>(bench: &Bench<M>) -> Outcome
where
    M: Manager<Resource: 'static> + 'static,
{
    let resource = bench.open().await?;
    bench.close("a good resource", resource).await?;
    if let Some(kill) = &bench.given.kill {
        let mut resource = bench.open().await?;
        kill(&mut resource).await;
        bench.give_up("a killed resource", resource).await?;
    }
    bench.nothing_is_left("`close`").await
}

async fn must_be_fit<M>(bench: &Bench<M>, what: &str, resource: &mut M::Resource) -> Outcome
where
    M: Manager<Resource: 'static> + 'static,
{
    if bench.is_broken(resource) {
        return Err(format!("`is_broken` condemns {what}"));
    }
    let checked = bench.check(what, resource).await?;
    checked.map_err(|error| format!("`check` refuses {what}: {error}"))
}

async fn acquire<M>(bench: &Bench<M>, when: &str) -> Outcome<Lease<M>>
where
    M: Manager<Resource: 'static> + 'static,
{
    let acquired = bench.pool.acquire().await;
    acquired.map_err(|error| format!("a pool cannot lend {when}: {error}"))
}

async fn cut_at<M, T>(
    bench: &Bench<M>,
    call: &str,
    polls: usize,
    future: impl Future<Output = T>,
) -> Outcome<Option<T>>
where
    M: Manager<Resource: 'static> + 'static,
{
    let ended = bench
        .within(&format!("`{call}`"), cut(polls, future))
        .await?;
    if ended.is_none() && polls == MOST_POLLS {
        return Err(format!("`{call}` has not ended after {polls} polls"));
    }
    Ok(ended)
}

/// Closes a resource after one of its calls was dropped, as a pool does.
async fn end<M>(bench: &Bench<M>, call: &str, polls: usize, resource: M::Resource) -> Outcome
where
    M: Manager<Resource: 'static> + 'static,
{
    let closed = bench.give_up("a resource", resource).await;
    closed.map_err(|text| after(call, polls, &text))?;
    still_opens(bench, call, polls).await
}

async fn still_opens<M>(bench: &Bench<M>, call: &str, polls: usize) -> Outcome
where
    M: Manager<Resource: 'static> + 'static,
{
    let opened = async {
        let mut resource = bench.open().await?;
        must_be_fit(bench, "a new resource", &mut resource).await?;
        bench.give_up("a new resource", resource).await
    };
    opened.await.map_err(|text| after(call, polls, &text))
}

fn after(call: &str, polls: usize, text: &str) -> String {
    format!("{text}, after `{call}` was dropped at poll {polls}")
}

/// The pool of the suite may have a resource, which the backend counts.
async fn end_pool<M>(bench: &Bench<M>) -> Outcome
where
    M: Manager<Resource: 'static> + 'static,
{
    let limit = bench.pool.config().open_timeout.unwrap_or_default();
    let left = bench.pool.close_within(limit).await;
    if left.unfinished > 0 {
        return Err(format!(
            "a pool cannot close its resources within {limit:?}"
        ));
    }
    Ok(())
}
