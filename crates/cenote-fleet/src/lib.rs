#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod cell;
mod change;
mod clock;
mod counted;
pub mod engine;
mod error;
mod fleet;
mod governed;
#[cfg(any(
    feature = "mysql",
    feature = "nats",
    feature = "postgres",
    feature = "redis"
))]
mod group;
#[cfg(feature = "tracing")]
mod log;
mod member;
mod memory;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "nats")]
mod nats;
mod onlooker;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
mod settings;
mod share;
mod shell;
mod status;
mod step;

pub use cell::Name;
pub use change::Change;
pub use counted::Counted;
pub use error::JoinError;
pub use fleet::{Fleet, FleetWatch, Joining};
#[cfg(any(
    feature = "mysql",
    feature = "nats",
    feature = "postgres",
    feature = "redis"
))]
pub use group::GroupError;
pub use memory::Memory;
#[cfg(feature = "mysql")]
pub use mysql::{MYSQL_TABLES, Mysql};
#[cfg(feature = "nats")]
pub use nats::Nats;
pub use onlooker::{Look, Onlooker};
#[cfg(feature = "postgres")]
pub use postgres::{Postgres, TABLE};
#[cfg(feature = "redis")]
pub use redis::Redis;
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
