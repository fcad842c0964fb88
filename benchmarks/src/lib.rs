//! cenote beside its peers. `cargo xtask bench` runs it, and README.md says how to read the
//! results.

pub mod harness;
mod local;
#[cfg(feature = "peers")]
mod postgres;
#[cfg(feature = "peers")]
mod sql;
mod subject;
#[cfg(test)]
mod tests;

use crate::harness::contender::Contender;
#[cfg(feature = "peers")]
use crate::harness::peers::ALL as PEERS;

#[cfg(not(feature = "peers"))]
static PEERS: [Contender; 0] = [];

/// Returns all contenders in the order of the tables.
pub fn contenders() -> Vec<Contender> {
    let cenote = Contender::new::<subject::Cenote>();
    #[cfg(not(feature = "peers"))]
    let ours = [cenote, local::CONTENDER].into_iter();
    #[cfg(feature = "peers")]
    let cenote = cenote.with_sql(sql::CENOTE);
    #[cfg(feature = "peers")]
    let ours = [cenote, local::CONTENDER, postgres::CONTENDER].into_iter();
    ours.chain(PEERS.iter().copied()).collect()
}

/// Returns the contender of that name.
pub fn contender(name: &str) -> Option<Contender> {
    contenders()
        .into_iter()
        .find(|contender| contender.name == name)
}
