//! What does a bridge cost a trip of one task through a pool?
//! Run: cargo run --release -p cenote-bridge --all-features --example bridge_overhead

use std::convert::Infallible;
use std::time::Duration;

use cenote::{LeaseEnd, Manager, Pool};
use cenote_bridge::{Bb8, Deadpool, R2d2};
use deadpool::managed::{Metrics, RecycleResult};

/// A round takes less than a few milliseconds, so that some rounds are undisturbed on a busy
/// machine.
const TRIPS: u32 = 2_000;
const ROUNDS: usize = 500;

/// A manager of each kind, whose resource says whether it is broken.
struct Plain {
    cleans: bool,
}

impl Manager for Plain {
    type Resource = bool;
    type Error = Infallible;

    async fn open(&self) -> Result<bool, Infallible> {
        Ok(false)
    }

    fn is_broken(&self, broken: &mut bool, _: LeaseEnd) -> bool {
        *broken
    }

    fn needs_cleaning(&self, _: &mut bool) -> bool {
        self.cleans
    }
}

impl bb8::ManageConnection for Plain {
    type Connection = bool;
    type Error = Infallible;

    async fn connect(&self) -> Result<bool, Infallible> {
        Ok(false)
    }

    async fn is_valid(&self, _: &mut bool) -> Result<(), Infallible> {
        Ok(())
    }

    fn has_broken(&self, broken: &mut bool) -> bool {
        *broken
    }
}

impl deadpool::managed::Manager for Plain {
    type Type = bool;
    type Error = Infallible;

    async fn create(&self) -> Result<bool, Infallible> {
        Ok(false)
    }

    async fn recycle(&self, _: &mut bool, _: &Metrics) -> RecycleResult<Infallible> {
        Ok(())
    }
}

impl r2d2::ManageConnection for Plain {
    type Connection = bool;
    type Error = Infallible;

    fn connect(&self) -> Result<bool, Infallible> {
        Ok(false)
    }

    fn is_valid(&self, _: &mut bool) -> Result<(), Infallible> {
        Ok(())
    }

    fn has_broken(&self, broken: &mut bool) -> bool {
        *broken
    }
}

/// Returns the time of one trip in nanoseconds.
#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the pool; this measures"
)]
async fn measure<M: Manager + 'static>(pool: &Pool<M>) -> f64 {
    let begun = std::time::Instant::now();
    for _ in 0..TRIPS {
        drop(pool.acquire().await);
    }
    let took: Duration = begun.elapsed();
    took.as_secs_f64() * 1e9 / f64::from(TRIPS)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let plain = || Plain { cleans: false };
    let native = Pool::builder(plain()).build()?;
    let bb8 = Pool::builder(Bb8::new(plain())).build()?;
    let r2d2 = Pool::builder(R2d2::new(plain())).build()?;
    let checked = Pool::builder(Deadpool::new(plain()).recycle_only_on_check()).build()?;
    let cleaning = Pool::builder(Plain { cleans: true }).build()?;
    let deadpool = Pool::builder(Deadpool::new(plain())).build()?;

    let mut best = [f64::MAX; 6];
    for _ in 0..ROUNDS {
        let times = [
            measure(&native).await,
            measure(&bb8).await,
            measure(&r2d2).await,
            measure(&checked).await,
            measure(&cleaning).await,
            measure(&deadpool).await,
        ];
        for (best, time) in best.iter_mut().zip(times) {
            *best = best.min(time);
        }
    }
    let [native, bb8, r2d2, checked, cleaning, deadpool] = best;
    let show = |name, time: f64, native| println!("{time:7.1} ns  {:5.2}  {name}", time / native);
    show("a native manager", native, native);
    show("Bb8", bb8, native);
    show("R2d2", r2d2, native);
    show("Deadpool, recycled only on check", checked, native);
    show(
        "a native manager that cleans after each use",
        cleaning,
        cleaning,
    );
    show("Deadpool, recycled between two uses", deadpool, cleaning);
    Ok(())
}
