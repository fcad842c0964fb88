//! cenote beside its peers. `cargo xtask bench` runs it, and README.md says how to read the
//! results.

#[cfg(feature = "peers")]
mod sql;
mod subject;
#[cfg(test)]
mod tests;

use std::iter;

use cenote_benchmarks_harness::contender::Contender;
#[cfg(feature = "peers")]
use cenote_benchmarks_harness::peers::ALL as PEERS;

#[cfg(not(feature = "peers"))]
static PEERS: [Contender; 0] = [];

/// Returns all contenders in the order of the tables.
pub fn contenders() -> Vec<Contender> {
    let cenote = Contender::new::<subject::Cenote>();
    #[cfg(feature = "peers")]
    let cenote = cenote.with_sql(sql::CENOTE);
    iter::once(cenote).chain(PEERS.iter().copied()).collect()
}

/// Returns the contender of that name.
pub fn contender(name: &str) -> Option<Contender> {
    contenders()
        .into_iter()
        .find(|contender| contender.name == name)
}
