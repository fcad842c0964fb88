//! Load with kills.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use cenote_redis::{Class, classify};
use redis::AsyncCommands;
use tokio::time::{sleep, timeout};

use crate::admin::Admin;
use crate::{LIMIT, builder, eventually};

/// How often all connections are killed.
const KILLS: usize = 15;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_is_answered_while_connections_are_killed() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let mut pool = builder(&server).mux(2).max_size(4).build().unwrap();
    for key in 0..32 {
        let () = pool.set(key, key).await.unwrap();
    }
    let over = Arc::new(AtomicBool::new(false));
    let (good, broken) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let callers: Vec<_> = (0..32_u32)
        .map(|key| {
            let (mut pool, over) = (pool.clone(), Arc::clone(&over));
            let (good, broken) = (Arc::clone(&good), Arc::clone(&broken));
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    let answer = async {
                        if key % 4 == 0 {
                            let Ok(mut lease) = pool.acquire().await else {
                                return Ok(None); // killed in the middle of its login
                            };
                            lease.get::<_, u32>(key).await.map(Some)
                        } else {
                            pool.get::<_, u32>(key).await.map(Some)
                        }
                    };
                    match timeout(LIMIT, answer).await.expect("every call ends") {
                        Ok(None) => {}
                        Ok(Some(value)) => {
                            assert_eq!(value, key, "the answer of another caller");
                            good.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => {
                            let class = classify(&error);
                            assert!(matches!(class, Class::Broken | Class::Refused), "{error}");
                            broken.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            })
        })
        .collect();

    for _ in 0..KILLS {
        let before = good.load(Ordering::Relaxed);
        admin.kill_all().await;
        eventually("commands are answered again", async || {
            good.load(Ordering::Relaxed) > before + 50
        })
        .await;
        sleep(Duration::from_millis(20)).await;
    }
    over.store(true, Ordering::Relaxed);
    for caller in callers {
        timeout(LIMIT, caller).await.unwrap().unwrap();
    }

    let status = pool.status();
    assert!(status.opened > 6, "connections were replaced: {status:?}");
    assert_eq!(pool.lanes().iter().sum::<usize>(), 0);
    assert!(good.load(Ordering::Relaxed) > broken.load(Ordering::Relaxed));
}
