//! Edges: where user code, runtimes and clocks come in. Each test is a program that once broke the
//! pool.

mod deadlines;
mod memory;
mod paused;
mod runtimes;
mod verdicts;
mod wake_ups;
