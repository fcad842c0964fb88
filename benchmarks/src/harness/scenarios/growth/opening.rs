//! Ten thousand opens, one after another.

use crate::harness::clock::now;
use crate::harness::peer::{Peer, Setup};
use crate::harness::results::Figure;
use crate::harness::runtime::Runtime;

const SIZE: usize = 10_000;

/// Plays one task that keeps them all.
pub fn round<P: Peer>() -> Vec<Figure> {
    Runtime::CurrentThread.run(async {
        let pool = P::build(&Setup::of_size(SIZE)).await;
        let mut held = Vec::with_capacity(SIZE);
        let started = now();
        for _ in 0..SIZE {
            held.push(pool.acquire().await);
        }
        vec![("ms", started.elapsed().as_secs_f64() * 1e3)]
    })
}
