//! The shop on some kind of server: its few operations, how it is made and how it is removed.
//!
//! A sale moves an amount to an account and makes an entry about it, in one transaction. So in the
//! end there must be as many entries as successful sales, and the entries must add up to the
//! balances.

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
mod sqlite;

use std::future::Future;

use cenote::Manager;

use crate::failure::Failure;

#[cfg(feature = "mysql")]
pub(super) use mysql::MysqlShop;
#[cfg(feature = "postgres")]
pub(super) use postgres::PostgresShop;
#[cfg(feature = "redis")]
pub(super) use redis::RedisShop;
pub(super) use sqlite::SqliteShop;

pub(super) const ACCOUNTS: i64 = 1_000;
/// How many accounts a range sum reads.
const RANGE: i64 = 20;

/// A connection of a shop.
pub(super) type Connection<S> = <<S as Shop>::Manager as Manager>::Resource;

pub(super) trait Shop: Send + Sync + 'static {
    type Manager: Manager<Resource: 'static> + 'static;

    /// How the sentences about the outage and its end begin. It is played in this program only.
    const OUTAGE: [&'static str; 2] = [
        "this program cuts its own line to the server",
        "the line is back",
    ];
    /// The end of the sentence about the spike, if a server needs a remark there.
    const REMARK: &'static str = "";

    fn manager(&self) -> &Self::Manager;

    /// Returns where the shop is and how it is removed by hand. `None`: the user need not know.
    fn place(&self) -> Option<Place> {
        None
    }

    /// Makes the place, which no one else has. After an error there is nothing to remove.
    fn make(
        &self,
        connection: &mut Connection<Self>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Makes the accounts.
    fn stock(
        &self,
        connection: &mut Connection<Self>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Reads one account and the sum of some.
    fn read(
        &self,
        connection: &mut Connection<Self>,
        account: i64,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Runs a short transaction. An abandoned one stops before the commit.
    fn sell(
        &self,
        connection: &mut Connection<Self>,
        sale: Sale,
    ) -> impl Future<Output = Result<Sold, Failure>> + Send;

    /// Reads what is there in the end.
    fn books(
        &self,
        connection: &mut Connection<Self>,
    ) -> impl Future<Output = Result<Books, Failure>> + Send;

    /// Removes the place with everything in it.
    fn remove(
        &self,
        connection: &mut Connection<Self>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// The place of a shop on the server of a user.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Such as "schema `cenote_demo_1f`".
    pub(super) name: String,
    /// The URL of the server, without its password.
    pub(super) url: String,
    /// The right that is needed to make it.
    pub(super) right: &'static str,
    /// What removes it by hand.
    pub(super) by_hand: String,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Sale {
    pub(super) account: i64,
    pub(super) amount: i64,
    pub(super) abandon: bool,
}

/// How a sale has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sold {
    Done,
    /// The database was locked for too long, and nothing was done.
    Busy,
}

/// The contents of the shop in the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Books {
    /// How many sales left an entry.
    pub(super) entries: i64,
    /// The sum of the entries.
    pub(super) moved: i64,
    /// The sum of the balances.
    pub(super) balance: i64,
}

/// Returns a name that no one else has.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
fn own_name() -> String {
    format!("cenote_demo_{:016x}", fastrand::u64(..))
}
