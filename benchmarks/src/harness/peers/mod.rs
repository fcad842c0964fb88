//! An adapter for each pool, and the floors.

mod bb8;
mod deadpool;
mod fast_pool;
mod floors;
mod mobc;
mod qp;
mod r2d2;
mod sqlx;
mod sqlx_driver;

use crate::harness::contender::Contender;
use crate::harness::sql::{DEADPOOL, SQLX};

/// All peers in the order of the tables. It is a static and not a constant, so that it is compiled
/// here and not again with every change of cenote.
pub static ALL: [Contender; 13] = [
    Contender::new::<deadpool::Deadpool>().with_sql(DEADPOOL),
    Contender::new::<deadpool::DeadpoolTimeouts>(),
    Contender::new::<bb8::Bb8>(),
    Contender::new::<mobc::Mobc>(),
    Contender::new::<r2d2::R2d2>(),
    Contender::new::<qp::Qp>(),
    Contender::new::<fast_pool::FastPool>(),
    Contender::new::<sqlx::Sqlx>().with_sql(SQLX),
    Contender::new::<floors::Permits>(),
    Contender::new::<floors::Channel>(),
    Contender::new::<floors::Locked>(),
    Contender::new::<floors::LockFree>(),
    Contender::new::<floors::PerThread>(),
];
