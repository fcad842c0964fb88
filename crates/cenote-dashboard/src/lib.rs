#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod actions;
mod assets;
mod clock;
mod dashboard;
mod events;
mod fleet;
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
mod trace;
mod view;
mod watched;

pub use dashboard::{Dashboard, Page};
pub use token::{Token, WeakToken};
