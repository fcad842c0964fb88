//! Hooks that pass the gates of the backend.

use cenote_testkit::{Call, Thing};

pub(crate) async fn before_acquire(thing: &mut Thing) -> bool {
    thing.pass(Call::BeforeAcquire).await
}

pub(crate) async fn before_release(thing: &mut Thing) -> bool {
    thing.pass(Call::BeforeRelease).await
}
