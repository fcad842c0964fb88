//! Reads a fleet by the engine that keeps it.

use std::time::Duration;

use cenote_fleet::engine::{Engine, EngineError};
use cenote_fleet::{GroupError, Joining, Onlooker};
use tokio::time::timeout;

use super::data::Fleet;
use crate::failure::{Failure, usage, whole_story};

/// A look takes a few round trips. A server that is busy for longer is told as trouble.
pub(in crate::fleet) const LIMIT: Duration = Duration::from_secs(5);

pub(in crate::fleet) struct Reader<E> {
    onlooker: Onlooker<E>,
    group: String,
}

impl<E: Engine> Reader<E> {
    pub(in crate::fleet) fn new(
        joining: Result<Joining<E>, GroupError>,
        group: &str,
    ) -> Result<Self, Failure> {
        let joining = joining.map_err(|error| usage(error.to_string()))?;
        Ok(Self {
            onlooker: joining.onlooker(),
            group: group.to_owned(),
        })
    }

    pub(super) async fn read(&mut self) -> Result<Fleet, Failure> {
        let look = match timeout(LIMIT, self.onlooker.look()).await {
            Ok(look) => look.map_err(explained)?,
            Err(_) => return Err(format!("no answer within {LIMIT:?}").into()),
        };
        match look {
            Some(look) => Ok(Fleet::new(&self.group, &look)),
            None => Err(self.unknown().await?),
        }
    }

    /// Says that there is no such group, and which there are.
    async fn unknown(&mut self) -> Result<Failure, Failure> {
        let group = &self.group;
        let known = match self.onlooker.groups().await? {
            None => "check its name".to_owned(),
            Some(groups) if groups.is_empty() => "it has none".to_owned(),
            Some(groups) => format!("its groups are {}", groups.join(", ")),
        };
        Ok(usage(format!("no group `{group}` on this server: {known}")))
    }
}

/// A server without the place for fleets is most often the wrong one.
fn explained(error: EngineError) -> Failure {
    let story = whole_story(&*error);
    let is_missing = ["does not exist", "doesn't exist", "has no bucket"];
    match story.contains("cenote_fleet") && is_missing.iter().any(|text| story.contains(text)) {
        true => {
            format!("no fleet is kept here: {story}; check server and database in the URL").into()
        }
        false => error,
    }
}
