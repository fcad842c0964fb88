#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod cell;
mod change;
mod clock;
pub mod engine;
mod error;
mod fleet;
mod governed;
mod member;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
mod settings;
mod share;
mod shell;
mod status;
mod step;

pub use change::Change;
pub use error::JoinError;
pub use fleet::{Fleet, FleetWatch, Joining};
pub use memory::Memory;
#[cfg(feature = "postgres")]
pub use postgres::{GroupError, Postgres, TABLE};
pub use settings::Settings;
pub use status::{FleetStatus, MemberStatus};

pub mod protocol {
    //! The protocol of a member, without clock and without I/O.
    //!
    //! You need this module if you write an engine of your own, or want to see how a fleet
    //! decides. [`step`] has the rules.

    pub use crate::cell::{Cell, DecodeError, Epoch, MemberId, Record};
    pub use crate::member::{Member, Reading};
    pub use crate::step::{Counts, Load, Mine, Orders, Seen, Step, Terms, step};
}
