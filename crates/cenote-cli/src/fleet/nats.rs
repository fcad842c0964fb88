//! A fleet that is kept in NATS JetStream.

use async_nats::jetstream;
use cenote_fleet::{Fleet, Nats};
use tokio::time::timeout;

use super::view::{LIMIT, Reader};
use crate::failure::{Failure, whole_story};
use crate::target::without_password;

pub(super) async fn reader(url: &str, group: &str) -> Result<Reader<Nats>, Failure> {
    let why = match timeout(LIMIT, async_nats::connect(url)).await {
        Ok(Ok(client)) => return Reader::new(Fleet::nats(&jetstream::new(client), group), group),
        Ok(Err(error)) => whole_story(&error),
        Err(_) => format!("no answer within {LIMIT:?}"),
    };
    let shown = without_password(url);
    let fix = "check that the server runs, and user, host and port in the URL";
    Err(format!("no connection to {shown}: {why}; {fix}").into())
}
