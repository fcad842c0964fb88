//! Pools on a model of a server, for engines that are not the server of the pooled connections.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote::{LeaseEnd, Manager, Pool};
use cenote_fleet::protocol::MemberId;
use tokio::time::sleep;

use crate::live::LIMIT;

/// The sessions by their numbers, each with its member.
#[derive(Clone, Default)]
pub(crate) struct Model(Arc<Mutex<BTreeMap<u64, MemberId>>>);

impl Model {
    pub(crate) fn pool(&self, id: MemberId) -> Pool<Sessions> {
        let model = self.clone();
        let pool = Pool::builder(Sessions { id, model }).acquire_timeout(LIMIT);
        pool.build().unwrap()
    }

    pub(crate) fn count(&self) -> u32 {
        self.0.lock().unwrap().len() as u32
    }

    pub(crate) fn end_all_of(&self, id: MemberId) {
        let mut sessions = self.0.lock().unwrap();
        sessions.retain(|_, member| *member != id);
    }
}

/// Opens sessions of one member.
pub(crate) struct Sessions {
    id: MemberId,
    model: Model,
}

/// An open or a close takes so long.
const WAY: Duration = Duration::from_millis(5);

impl Manager for Sessions {
    type Resource = u64;
    type Error = Infallible;

    async fn open(&self) -> Result<u64, Infallible> {
        sleep(WAY).await;
        let session = fastrand::u64(..);
        self.model.0.lock().unwrap().insert(session, self.id);
        Ok(session)
    }

    fn is_broken(&self, session: &mut u64, _: LeaseEnd) -> bool {
        !self.model.0.lock().unwrap().contains_key(session)
    }

    async fn close(&self, session: u64) -> Result<(), Infallible> {
        sleep(WAY).await;
        self.model.0.lock().unwrap().remove(&session);
        Ok(())
    }
}
