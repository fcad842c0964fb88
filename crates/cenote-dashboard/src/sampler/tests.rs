//! What the shared part leaves behind: nothing.

use std::sync::Arc;

use cenote::Pool;

use super::{Shared, lock};
use crate::dashboard::Dashboard;

#[tokio::test]
async fn the_recorder_leaves_the_pool_with_the_page() {
    let pool = Pool::from_fn(async || Ok::<_, &str>(())).build().unwrap();
    let shared = Shared::new(Dashboard::new());
    shared.keep_running();
    let recorder = {
        let watched = lock(&shared.watched);
        Arc::downgrade(&watched[&pool.number()].recorder)
    };
    drop(pool.acquire().await.unwrap());
    assert!(recorder.upgrade().is_some());

    drop(shared);

    assert!(recorder.upgrade().is_none(), "the pool has it still");
}

#[tokio::test]
async fn looks_at_the_same_time_attach_one_recorder() {
    let pool = Pool::from_fn(async || Ok::<_, &str>(())).build().unwrap();
    let shared = Shared::new(Dashboard::new());
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || (0..50).for_each(|_| drop(shared.look())))
        })
        .collect();
    let late = Pool::from_fn(async || Ok::<_, &str>(())).build().unwrap();
    for thread in threads {
        thread.join().unwrap();
    }
    shared.look();

    drop(late.acquire().await.unwrap());

    for (pool, opened) in [(&pool, 0), (&late, 1)] {
        let watched = lock(&shared.watched)[&pool.number()].clone();
        let events = watched.recorder.events().since(0);
        assert_eq!(events.len(), opened);
        let holders = Arc::strong_count(&watched.recorder);
        assert_eq!(holders, 2, "the page and the pool have it");
    }
}
