//! The scope of a request that uses no resource allocates nothing. This is a test program of its
//! own, because the allocator counts for all threads.

use std::alloc::System;
use std::convert::Infallible;

use cenote_tower::{ScopeLayer, Text};
use http::{Request, Response};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tower::{Layer, Service, service_fn};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

async fn hello(_: Request<()>) -> Result<Response<Text>, Infallible> {
    tokio::task::yield_now().await; // so that the future is polled more than once
    Ok(Response::new(Text::default()))
}

/// Returns the number of allocations of a request: the lowest of many tries, because other threads
/// of the test program allocate too.
async fn allocations<S, B>(service: &mut S) -> usize
where
    S: Service<Request<()>, Response = Response<B>, Error = Infallible>,
{
    let mut fewest = usize::MAX;
    for _ in 0..100 {
        let request = Request::new(());
        let region = Region::new(ALLOCATOR);
        drop(service.call(request).await.unwrap());
        fewest = fewest.min(region.change().allocations);
    }
    fewest
}

#[tokio::test]
async fn a_request_that_uses_nothing_allocates_nothing_for_its_scope() {
    let mut plain = service_fn(hello);
    let mut scoped = ScopeLayer::new().layer(service_fn(hello));

    let without = allocations(&mut plain).await;
    let with = allocations(&mut scoped).await;

    assert_eq!(with, without);
}
