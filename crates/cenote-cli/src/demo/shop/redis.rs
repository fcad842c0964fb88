//! The shop in three keys of its own on a Redis server: a hash of balances and two counters.

use cenote::Config;
use cenote_redis::redis::{self, Cmd, Value};
use cenote_redis::{Redis, Session};

use super::{ACCOUNTS, Books, Place, RANGE, Sale, Shop, Sold, own_name};
use crate::failure::Failure;
use crate::target::{self, Target};

#[derive(Debug)]
pub(in crate::demo) struct RedisShop {
    manager: Redis,
    place: Place,
    /// The keys: balances by account, the number of entries, and their sum.
    balances: String,
    entries: String,
    moved: String,
}

impl RedisShop {
    /// Opens a first connection, so that an error says what to do.
    pub(in crate::demo) async fn connect(url: String) -> Result<Self, Failure> {
        let pool = target::redis::open(&url, Config::default()).await?;
        let manager = pool.pool().manager().clone();
        pool.close();
        let prefix = own_name();
        let [balances, entries, moved] =
            ["balances", "entries", "moved"].map(|key| format!("{prefix}:{key}"));
        let place = Place {
            name: format!("keys `{prefix}:*`"),
            url: Target::Redis(url).shown(),
            right: "to use hashes, counters and transactions on keys that begin with `cenote_demo_`",
            by_hand: format!("DEL {balances} {entries} {moved}"),
        };
        Ok(Self {
            manager,
            place,
            balances,
            entries,
            moved,
        })
    }
}

impl Shop for RedisShop {
    type Manager = Redis;

    const REMARK: &'static str = "; plain commands could share one, a transaction of Redis cannot";

    fn manager(&self) -> &Redis {
        &self.manager
    }

    fn place(&self) -> Option<Place> {
        Some(self.place.clone())
    }

    /// Keys are made by their first use. The first one shows whether that is allowed.
    async fn make(&self, session: &mut Session) -> Result<(), Failure> {
        let entries = Cmd::set(&self.entries, 0);
        Ok(entries.query_async::<()>(session).await?)
    }

    async fn stock(&self, session: &mut Session) -> Result<(), Failure> {
        let accounts: Vec<(i64, i64)> = (0..ACCOUNTS).map(|account| (account, 0)).collect();
        let mut rest = redis::pipe();
        rest.set(&self.moved, 0).ignore();
        rest.hset_multiple(&self.balances, &accounts).ignore();
        Ok(rest.query_async::<()>(session).await?)
    }

    async fn read(&self, session: &mut Session, account: i64) -> Result<(), Failure> {
        let balance = Cmd::hget(&self.balances, account);
        balance.query_async::<Value>(session).await?;
        let range: Vec<i64> = (account..account + RANGE).collect();
        let some = Cmd::hmget(&self.balances, range);
        some.query_async::<Value>(session).await?;
        Ok(())
    }

    async fn sell(&self, session: &mut Session, sale: Sale) -> Result<Sold, Failure> {
        let Sale {
            account, amount, ..
        } = sale;
        let mut steps = redis::pipe();
        if sale.abandon {
            // Without the `EXEC` that an atomic pipeline ends with.
            steps.cmd("MULTI").ignore();
        } else {
            steps.atomic();
        }
        steps.hincr(&self.balances, account, amount).ignore();
        steps.incr(&self.entries, 1).ignore();
        steps.incr(&self.moved, amount).ignore();
        steps.query_async::<()>(session).await?;
        Ok(Sold::Done)
    }

    async fn books(&self, session: &mut Session) -> Result<Books, Failure> {
        let mut all = redis::pipe();
        all.get(&self.entries).get(&self.moved);
        all.hvals(&self.balances);
        let (entries, moved, balances): (i64, i64, Vec<i64>) = all.query_async(session).await?;
        Ok(Books {
            entries,
            moved,
            balance: balances.iter().sum(),
        })
    }

    async fn remove(&self, session: &mut Session) -> Result<(), Failure> {
        let keys = [&self.balances, &self.entries, &self.moved];
        Ok(Cmd::del(&keys).query_async::<()>(session).await?)
    }
}
