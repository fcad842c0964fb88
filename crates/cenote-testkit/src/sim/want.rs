//! The calls by which a client asks for a lease or a place.

use cenote::Permit;

use super::backend::SimManager;
use super::client::Patience;
use super::kinds::SimPool;
use super::outcome::{Acquired, Got};
use super::world::now;

/// What a client asks for.
pub(super) enum Want {
    Lease,
    /// A lease, but not behind other callers.
    LeaseOrNothing,
    /// A place, for a lease later.
    Place,
    /// The lease for a place.
    LeaseFor(Permit<SimManager>),
}

impl Want {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Lease => "acquires",
            Self::LeaseOrNothing => "tries or opens",
            Self::Place => "reserves",
            Self::LeaseFor(_) => "uses its permit",
        }
    }

    /// Asks the pool.
    pub(super) async fn ask(self, pool: SimPool, patience: Patience) -> Acquired {
        let limit = match patience {
            Patience::Pool => pool.config().acquire_timeout,
            Patience::For(limit) => Some(limit),
            Patience::Until(deadline) => Some(deadline.saturating_duration_since(now())),
        };
        match self {
            Self::Lease => match patience {
                Patience::Pool => pool.acquire().await.map(Got::Lease),
                Patience::For(limit) => pool.acquire_within(limit).await.map(Got::Lease),
                Patience::Until(deadline) => {
                    let acquired = pool.acquire_by(deadline.into_std()).await;
                    acquired.map(Got::Lease)
                }
            },
            Self::LeaseOrNothing => {
                let acquired = pool.try_acquire_or_open().await;
                acquired.map(|lease| lease.map_or(Got::Nothing, Got::Lease))
            }
            Self::Place => pool.reserve_within(limit).await.map(Got::Permit),
            Self::LeaseFor(permit) => {
                let acquired = permit.acquire_within(limit).await;
                acquired.map(|lease| Got::Lease(lease.into()))
            }
        }
    }
}
