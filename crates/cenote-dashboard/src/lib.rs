#![doc = include_str!("../README.md")]

mod actions;
mod assets;
mod clock;
mod dashboard;
mod events;
mod guard;
mod histogram;
mod history;
mod recorder;
mod redact;
mod routes;
mod sampler;
mod settings;
mod stream;
mod token;
mod view;
mod watched;

pub use dashboard::{Dashboard, Page};
pub use token::{Token, WeakToken};
