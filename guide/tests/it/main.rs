//! What the guide says is compared with the code, and its pictures are drawn.
//!
//! `CENOTE_DRAW=1 cargo test -p cenote-guide` writes the pictures anew.

mod chapters;
mod chart;
mod names;
mod operations;
mod pictures;
mod runs;
mod slot;
