//! The manager of the demo's pool: the one of the shop, behind a switch for the outage.

use std::sync::atomic::{AtomicBool, Ordering};

use cenote::{LeaseEnd, Manager, Severer};

use super::shop::{Connection, Shop};
use crate::failure::Failure;

/// A shop and the switch in front of its server. The server itself goes on, and notices only that
/// connections are closed.
#[derive(Debug)]
pub(super) struct Wired<S> {
    pub(super) shop: S,
    is_cut: AtomicBool,
}

impl<S: Shop> Wired<S> {
    pub(super) fn new(shop: S) -> Self {
        Self {
            shop,
            is_cut: AtomicBool::new(false),
        }
    }

    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    pub(super) fn restore(&self) {
        self.is_cut.store(false, Ordering::Relaxed);
    }

    fn power(&self) -> Result<(), Failure> {
        match self.is_cut.load(Ordering::Relaxed) {
            true => Err("the database is gone: wait until it is back".into()),
            false => Ok(()),
        }
    }
}

impl<S: Shop> Manager for Wired<S> {
    type Resource = Connection<S>;
    type Error = Failure;

    async fn open(&self) -> Result<Connection<S>, Failure> {
        self.power()?;
        self.shop.manager().open().await.map_err(Into::into)
    }

    async fn check(&self, connection: &mut Connection<S>) -> Result<(), Failure> {
        self.power()?;
        let manager = self.shop.manager();
        manager.check(connection).await.map_err(Into::into)
    }

    fn is_broken(&self, connection: &mut Connection<S>, end: LeaseEnd) -> bool {
        self.power().is_err() || self.shop.manager().is_broken(connection, end)
    }

    fn needs_cleaning(&self, connection: &mut Connection<S>) -> bool {
        self.shop.manager().needs_cleaning(connection)
    }

    async fn clean(&self, connection: &mut Connection<S>) -> Result<(), Failure> {
        let manager = self.shop.manager();
        manager.clean(connection).await.map_err(Into::into)
    }

    async fn close(&self, connection: Connection<S>) -> Result<(), Failure> {
        let manager = self.shop.manager();
        manager.close(connection).await.map_err(Into::into)
    }

    fn severer(&self, connection: &mut Connection<S>) -> Option<Severer> {
        self.shop.manager().severer(connection)
    }
}
