//! Pools on a model server, for engines that are not the server of the pooled connections.

use std::sync::{Arc, Mutex};

use cenote::Pool;
use cenote_fleet::protocol::MemberId;

use crate::live::LIMIT;
use crate::rig::Sessions;
use crate::sim::server::Server;

pub(crate) struct Model(Arc<Mutex<Server>>);

impl Default for Model {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Server::new(None))))
    }
}

impl Model {
    pub(crate) fn pool(&self, id: MemberId) -> Pool<Sessions> {
        let sessions = Sessions::new(id, &self.0);
        let pool = Pool::builder(sessions).acquire_timeout(LIMIT);
        pool.build().unwrap()
    }

    pub(crate) fn count(&self) -> u32 {
        self.0.lock().unwrap().count()
    }

    pub(crate) fn end_all_of(&self, id: MemberId) {
        self.0.lock().unwrap().end_all_of(id);
    }
}
