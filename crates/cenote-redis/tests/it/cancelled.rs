//! Futures that are dropped at every await.

use std::time::Duration;

use cenote_redis::Pool;
use cenote_testkit::conformance::cut;
use redis::{AsyncCommands, cmd, pipe};
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::admin::Admin;
use crate::{LIMIT, builder, eventually};

/// Waits until nothing is in use but lanes.
async fn settled(pool: &Pool) {
    eventually("all is given back", async || {
        let idle = pool.lanes().iter().all(|lane| *lane == 0);
        let leases = pool.pool().leases();
        let lanes = leases
            .iter()
            .filter(|held| held.label.as_deref() == Some("a lane"));
        idle && lanes.count() == leases.len() && pool.status().cleaning == 0
    })
    .await;
}

#[tokio::test]
async fn a_call_on_the_handle_may_be_dropped_at_every_await() {
    let server = cenote_servers::redis::start().unwrap();
    for mux in [0, 1] {
        let pool = builder(&server).mux(mux).max_size(2).build().unwrap();
        for polls in 1..60 {
            let (mut a, mut b, mut c) = (pool.clone(), pool.clone(), pool.clone());
            cut(polls, async {
                let () = a.set("k", "v").await.unwrap();
                let _: String = b.get("k").await.unwrap();
                let _: (u32,) = pipe()
                    .atomic()
                    .incr("n", 1)
                    .query_async(&mut c)
                    .await
                    .unwrap();
            })
            .await;
            let mut pool = pool.clone();
            let echo = cmd("ECHO").arg(polls).to_owned();
            let echo = timeout(LIMIT, echo.query_async::<usize>(&mut pool));
            assert_eq!(echo.await.unwrap().unwrap(), polls);
        }
        settled(&pool).await;
        assert!(
            pool.status().opened <= 2 + mux as u64,
            "no connection was lost"
        );
    }
}

#[tokio::test]
async fn a_lease_may_be_dropped_at_every_await_and_its_next_user_is_clean() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let pool = builder(&server).mux(0).max_size(1).build().unwrap();
    for polls in 1..60 {
        cut(polls, async {
            let mut lease = pool.acquire().await.unwrap();
            cmd("SELECT").arg(1).exec_async(&mut lease).await.unwrap();
            cmd("WATCH").arg("k").exec_async(&mut lease).await.unwrap();
            cmd("MULTI").exec_async(&mut lease).await.unwrap();
            let () = lease.set("k", "left").await.unwrap();
        })
        .await;
        let () = admin.say("SET k other").await;

        let mut lease = timeout(LIMIT, pool.acquire()).await.unwrap().unwrap();
        let info: String = cmd("CLIENT")
            .arg("INFO")
            .query_async(&mut lease)
            .await
            .unwrap();
        assert!(
            info.contains(" db=0 ") && info.contains(" multi=-1 "),
            "{polls}: {info}"
        );
        let done: Option<((),)> = pipe()
            .atomic()
            .set("k", polls)
            .query_async(&mut lease)
            .await
            .unwrap();
        assert!(done.is_some(), "{polls}: a watch was left");
        let value: usize = lease.get("k").await.unwrap();
        assert_eq!(value, polls);
    }
    settled(&pool).await;
}

#[tokio::test]
async fn a_dropped_first_call_wastes_no_open() {
    let server = cenote_servers::redis::start().unwrap();
    let pool = builder(&server).mux(1).build().unwrap();
    let mut first = pool.clone();
    cut(2, first.get::<_, Option<String>>("k")).await;

    let mut second = pool.clone();
    let _: Option<String> = second.get("k").await.unwrap();

    assert_eq!(pool.status().opened, 1);
}

/// Every key has its own value, so that an answer that went to a wrong caller would be seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_cancels_never_gives_an_answer_to_a_wrong_caller() {
    const KEYS: usize = 64;
    let server = cenote_servers::redis::start().unwrap();
    let mut pool = builder(&server)
        .mux(2)
        .lane_depth(16)
        .max_size(2)
        .build()
        .unwrap();
    for key in 0..KEYS {
        let () = pool.set(key, format!("value of {key}")).await.unwrap();
    }
    let callers: Vec<_> = (0..KEYS)
        .map(|key| {
            let mut pool = pool.clone();
            tokio::spawn(async move {
                let mut random = fastrand::Rng::with_seed(key as u64);
                let mut answered = 0;
                for _ in 0..300 {
                    let polls = random.usize(1..6);
                    let by_lease = random.u8(..) < 16;
                    let get = async {
                        if by_lease {
                            let mut lease = pool.acquire().await.unwrap();
                            lease.get::<_, String>(key).await
                        } else {
                            pool.get::<_, String>(key).await
                        }
                    };
                    if let Some(value) = cut(polls, get).await {
                        assert_eq!(value.unwrap(), format!("value of {key}"));
                        answered += 1;
                    }
                    yield_now().await;
                }
                answered
            })
        })
        .collect();

    let mut answered = 0;
    for caller in callers {
        answered += caller.await.unwrap();
    }

    assert!(answered > 0, "some were let through");
    settled(&pool).await;
    for key in 0..KEYS {
        let value: String = pool.get(key).await.unwrap();
        assert_eq!(value, format!("value of {key}"));
    }
}

#[tokio::test]
async fn a_panic_in_the_middle_of_a_transaction_leaves_a_clean_pool() {
    let server = cenote_servers::redis::start().unwrap();
    let pool = builder(&server).max_size(1).build().unwrap();
    let mut user = pool.clone();
    let panicked = tokio::spawn(cenote::scope(async move {
        cmd("WATCH").arg("k").exec_async(&mut user).await.unwrap();
        cmd("MULTI").exec_async(&mut user).await.unwrap();
        panic!("as planned");
    }));
    assert!(panicked.await.unwrap_err().is_panic());

    let mut lease = timeout(LIMIT, pool.acquire()).await.unwrap().unwrap();
    let value: Option<String> = lease.get("k").await.unwrap();

    assert_eq!(value, None, "it was not queued");
}

/// The answer of the slow command comes before that of the next user.
#[tokio::test]
async fn a_lease_whose_command_was_dropped_is_lent_again_once_it_has_answered() {
    let server = cenote_servers::redis::start().unwrap();
    let mut admin = Admin::of(server.url()).await;
    let pool = builder(&server).max_size(1).build().unwrap();
    let mut lease = pool.acquire().await.unwrap();
    let first = crate::id(&mut lease).await;
    let () = admin.say("CLIENT PAUSE 600000 WRITE").await;
    let set = tokio::spawn(async move { lease.set::<_, _, ()>("k", "v").await });
    admin.sees(1, "set").await;
    set.abort();
    assert!(set.await.unwrap_err().is_cancelled());
    eventually("it is cleaned", async || pool.status().cleaning == 1).await;

    let none = pool.acquire_within(Duration::from_millis(100)).await;
    assert!(
        none.is_err(),
        "it was lent while its answer was outstanding"
    );
    let () = admin.say("CLIENT UNPAUSE").await;

    let mut next = pool.acquire().await.unwrap();
    assert_eq!(crate::id(&mut next).await, first);
}
