//! Tests of the live page: its JSON, its streams, its safety, and the page itself in a browser.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod accessibility;
mod actions;
mod browser;
mod fleet;
mod json;
mod keyboard;
mod life;
mod load;
mod page;
mod rig;
mod safety;
mod streams;
mod trace;
