//! Run: cargo run -p cenote-examples --example back_pressure
//!
//! How does a tower service accept no more requests than its pool can serve?

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use cenote::{AcquireError, Closures, Permit, Pool};
use tower::{Service, ServiceExt};

type Connections = Closures<String>;
type Reserving = Pin<Box<dyn Future<Output = Result<Permit<Connections>, Failed>> + Send>>;
type Failed = AcquireError<cenote::ClosureError>;

/// It is ready when a place in the pool is reserved for the next request. The connection itself is
/// acquired when the request comes.
struct Orders {
    pool: Pool<Connections>,
    reserving: Option<Reserving>,
    permit: Option<Permit<Connections>>,
}

impl Clone for Orders {
    /// A place belongs to one service.
    fn clone(&self) -> Self {
        Self::new(&self.pool)
    }
}

impl Orders {
    fn new(pool: &Pool<Connections>) -> Self {
        Self {
            pool: pool.clone(),
            reserving: None,
            permit: None,
        }
    }
}

impl Service<u32> for Orders {
    type Response = String;
    type Error = Failed;
    type Future = Pin<Box<dyn Future<Output = Result<String, Failed>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        if self.permit.is_none() {
            let pool = self.pool.clone();
            let reserving = self
                .reserving
                .get_or_insert_with(|| Box::pin(async move { pool.reserve().await }));
            let reserved = ready!(reserving.as_mut().poll(context));
            self.reserving = None;
            self.permit = Some(reserved?);
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, order: u32) -> Self::Future {
        let permit = self
            .permit
            .take()
            .expect("`poll_ready` comes before `call`");
        Box::pin(async move {
            let connection = permit.acquire().await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(format!("order {order} on {}", *connection))
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let connect = async || Ok::<_, Infallible>(String::from("a connection"));
    let pool = Pool::from_fn(connect).name("orders").max_size(2).build()?;
    let service = Orders::new(&pool);

    let (mut first, mut second, mut third) = (service.clone(), service.clone(), service.clone());
    first.ready().await?;
    second.ready().await?;
    println!(
        "two are ready, {} places are reserved, nothing is open",
        pool.status().reserved
    );
    assert_eq!((pool.status().reserved, pool.status().total), (2, 0));

    let hurried = tokio::time::timeout(Duration::from_millis(5), third.ready()).await;
    println!("the third is not: its request stays with the client");
    assert!(hurried.is_err());

    let (one, other) = (first.call(1), second.call(2));
    let (one, other, third) =
        tokio::join!(one, other, async { third.ready().await?.call(3).await });
    for told in [one?, other?, third?] {
        println!("{told}");
    }
    assert_eq!(pool.status().waiting, 0);
    Ok(())
}
