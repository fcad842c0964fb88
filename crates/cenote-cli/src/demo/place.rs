//! The place of a shop: it is made, stocked, read and removed by connections beside the pool.

use std::fmt;
use std::time::Duration;

use cenote::Manager;
use tokio::time::timeout;

use super::shop::{Books, Connection, Place, Shop};
use crate::failure::{Failure, whole_story};

/// Each of these takes far less time on a server that works.
const LIMIT: Duration = Duration::from_secs(30);

pub(super) async fn make<S: Shop>(shop: &S) -> Result<(), Failure> {
    let made = visit(shop, async |connection| shop.make(connection).await).await;
    made.map_err(|error| match shop.place() {
        None => error,
        Some(place) => {
            let (story, right) = (whole_story(&*error), place.right);
            format!(
                "the demo could not make {place}: {story}; it needs the right {right}, or leave \
                 `--url` out"
            )
            .into()
        }
    })
}

pub(super) async fn stock<S: Shop>(shop: &S) -> Result<(), Failure> {
    visit(shop, async |connection| shop.stock(connection).await).await
}

pub(super) async fn books<S: Shop>(shop: &S) -> Result<Books, Failure> {
    visit(shop, async |connection| shop.books(connection).await).await
}

pub(super) async fn remove<S: Shop>(shop: &S) -> Result<(), Failure> {
    let removed = visit(shop, async |connection| shop.remove(connection).await).await;
    removed.map_err(|error| match shop.place() {
        None => error,
        Some(place) => {
            let (story, by_hand) = (whole_story(&*error), &place.by_hand);
            format!("{place} could not be removed: {story}; remove it by `{by_hand}`").into()
        }
    })
}

/// Opens a connection, does something with it and closes it.
async fn visit<S: Shop, T>(
    shop: &S,
    act: impl AsyncFnOnce(&mut Connection<S>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let visit = async {
        let mut connection = shop.manager().open().await.map_err(Into::into)?;
        let done = act(&mut connection).await;
        // What was done is done, also if the connection does not end well.
        let _ = shop.manager().close(connection).await;
        done
    };
    let Ok(done) = timeout(LIMIT, visit).await else {
        return Err(format!("no answer within {LIMIT:?}").into());
    };
    done
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.name, self.url)
    }
}
