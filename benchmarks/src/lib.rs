//! cenote beside its peers. `cargo xtask bench` runs it, and README.md says how to read the
//! results.

#[cfg(feature = "peers")]
mod postgres;
#[cfg(feature = "peers")]
mod sql;
mod subject;
#[cfg(test)]
mod tests;

#[cfg(not(feature = "peers"))]
use std::iter;

use cenote_benchmarks_harness::contender::Contender;
#[cfg(feature = "peers")]
use cenote_benchmarks_harness::peers::ALL as PEERS;

#[cfg(not(feature = "peers"))]
static PEERS: [Contender; 0] = [];

/// Returns all contenders in the order of the tables.
pub fn contenders() -> Vec<Contender> {
    let cenote = Contender::new::<subject::Cenote>();
    #[cfg(not(feature = "peers"))]
    let ours = iter::once(cenote);
    #[cfg(feature = "peers")]
    let ours = [cenote.with_sql(sql::CENOTE), postgres::CONTENDER].into_iter();
    ours.chain(PEERS.iter().copied()).collect()
}

/// Returns the contender of that name.
pub fn contender(name: &str) -> Option<Contender> {
    contenders()
        .into_iter()
        .find(|contender| contender.name == name)
}
