//! For tests of and with cenote: a clock advanced by hand, a manager whose every callback can be
//! made to fail, hang or panic, and a rig that puts them together. [`conformance`] is for the
//! authors of managers.
//!
//! ```
//! use cenote_testkit::{Call, Gate, Rig};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
//! let rig = Rig::new(|pool| pool.max_size(1));
//! rig.backend.once(Call::Open, Gate::Fail);
//! assert!(rig.pool.acquire().await.is_err());
//! rig.assert_full_service().await;
//! # }
//! ```

mod backend;
pub mod clock;
pub mod conformance;
mod proxy;
mod recorder;
mod rig;
#[cfg(feature = "sound")]
pub mod sim;
pub mod soak;
mod status;

pub use backend::{Backend, Call, Fault, Gate, GatedManager, Thing};
pub use conformance::cut;
pub use proxy::{Counts, Proxy, Then, Way};
pub use recorder::Recorder;
pub use rig::{GatedPool, Rig, Waiting};
pub use status::counters;
