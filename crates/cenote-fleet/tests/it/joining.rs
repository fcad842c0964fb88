//! Joining and leaving, in good order and in bad.

use cenote::Pool;
use cenote_fleet::engine::{Engine, EngineError, Snapshot};
use cenote_fleet::protocol::DecodeError;
use cenote_fleet::{Fleet, JoinError, Memory};
use tokio::runtime::Builder;

use crate::SECOND;
use crate::rig::{Rig, eventually, give_back};

#[tokio::test(start_paused = true)]
async fn a_dropped_handle_leaves_when_the_leases_are_back() {
    let rig = Rig::new();
    let (leaver, stayer) = (rig.join(10).await, rig.join(10).await);
    let callers = leaver.want(4);
    leaver.lends(4).await;
    let _waiting = stayer.want(20);
    stayer.lends(6).await;

    drop(leaver.fleet);
    tokio::time::sleep(20 * SECOND).await;
    assert_eq!(stayer.in_use(), 6, "four are still out");
    give_back(callers);

    stayer.lends(10).await;
    assert!(leaver.pool.is_suspended());
    assert_eq!((rig.peak(), stayer.fleet.status().members.len()), (10, 1));
}

#[tokio::test(start_paused = true)]
async fn leaving_waits_until_all_connections_are_closed() {
    let rig = Rig::new();
    let seat = rig.join(10).await;
    seat.grow(5).await;

    seat.fleet.leave().await;

    assert_eq!((rig.sessions(), seat.pool.status().total), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_has_left_may_join_again() {
    let rig = Rig::new();
    let seat = rig.join(10).await;
    seat.fleet.leave().await;

    let (joining, ..) = rig.prepare();
    let fleet = joining.capacity(10).join(&seat.pool).await.unwrap();

    drop(seat.pool.acquire().await.unwrap());
    assert_eq!(fleet.status().members.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_closed_pool_leaves_by_itself() {
    let rig = Rig::new();
    let (mut closed, other) = (rig.join(10).await, rig.join(10).await);

    closed.pool.close();

    while closed.fleet.changed().await.is_some() {}
    let what = || format!("{:?}", other.fleet.status());
    eventually(what, || other.fleet.status().members.len() == 1).await;
}

#[test]
fn a_pool_whose_fleet_has_lost_its_runtime_lends_nothing_and_says_why() {
    let runtime = || {
        let mut builder = Builder::new_current_thread();
        builder.enable_all().start_paused(true).build().unwrap()
    };
    let (rig, first, second) = (Rig::new(), runtime(), runtime());
    let seat = first.block_on(rig.join(10));

    drop(first);
    let error = second.block_on(seat.pool.acquire_within(SECOND));

    let text = error.unwrap_err().to_string();
    assert!(text.contains("fleet: its task has ended"), "{text}");
    assert!(seat.pool.is_suspended() && seat.fleet.watch().has_left());
    assert_eq!(rig.sessions(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pool_whose_engine_has_panicked_lends_nothing() {
    let pool = Pool::from_fn(async || Ok::<_, &str>(())).build().unwrap();
    let mut fleet = Fleet::on(Panics(Memory::new())).join(&pool).await.unwrap();

    while fleet.changed().await.is_some() {}

    assert!(pool.is_suspended());
    let text = pool.acquire_within(SECOND).await.unwrap_err().to_string();
    assert!(text.contains("fleet: its task has ended"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn leaving_ends_although_the_engine_is_gone() {
    let rig = Rig::new();
    let seat = rig.join(10).await;
    seat.line
        .is_cut
        .store(true, std::sync::atomic::Ordering::Relaxed);

    seat.fleet.leave().await;

    assert_eq!(rig.sessions(), 0);
}

#[tokio::test(start_paused = true)]
async fn connections_from_before_are_closed() {
    let rig = Rig::new();
    let (joining, pool, _line) = rig.prepare();
    drop((pool.acquire().await, pool.acquire().await));

    let fleet = joining.capacity(10).floor(1).join(&pool).await.unwrap();

    let what = || format!("{:?}", pool.status());
    eventually(what, || pool.status().closes.total() == 2).await;
    drop(pool.acquire().await.unwrap());
    assert_eq!((rig.sessions(), fleet.status().failures), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_cell_of_a_newer_program_is_left_alone() {
    let rig = Rig::new();
    rig.memory.overwrite(Some(vec![9, 1, 2, 3]));
    let (joining, pool, _line) = rig.prepare();

    let error = joining.join(&pool).await.unwrap_err();

    assert!(matches!(
        error,
        JoinError::Cell(DecodeError::Newer { version: 9 })
    ));
    assert!(!error.is_retryable());
    assert!(
        error.to_string().contains("upgrade cenote-fleet here"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_does_not_answer_is_an_error_that_names_the_limit() {
    let rig = Rig::new();
    let (joining, pool, line) = rig.prepare();
    line.is_cut
        .store(true, std::sync::atomic::Ordering::Relaxed);

    let error = joining.join(&pool).await.unwrap_err();

    assert!(error.is_retryable());
    let text = "the engine of the fleet failed: the engine did not answer within 2.5s";
    assert_eq!(error.to_string(), text);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_setting_is_refused_with_its_range_and_the_pool_goes_on() {
    let pool = || Pool::from_fn(async || Ok::<_, &str>(()));
    let wide = pool().min_idle(3).build().unwrap();
    let join = || Fleet::on(Memory::new());

    let errors = [
        join().join(&wide).await.unwrap_err(),
        join()
            .capacity(4)
            .floor(3)
            .overhead(2)
            .join(&wide)
            .await
            .unwrap_err(),
        join().floor(3).weight(0).join(&wide).await.unwrap_err(),
        join()
            .floor(3)
            .ttl(SECOND / 2)
            .join(&wide)
            .await
            .unwrap_err(),
        join().floor(3).name("api 3").join(&wide).await.unwrap_err(),
    ];

    assert_eq!(
        errors.map(|error| error.to_string()),
        [
            "`floor` is 1, and must be at least 3 (1, `min_size` and `min_idle` of the pool must \
             fit)",
            "`capacity` is 4, and must be at least 5 (the floor, and 2 sessions beside the pool)",
            "`weight` is 0, and must be from 1 to 1000",
            "`ttl` is 500ms, and must be from 1s to 600s",
            "`name` is `api 3`, and must be 1 to 32 visible ASCII characters",
        ]
    );
    assert!(wide.acquire().await.is_ok());
}

/// An engine that panics when it waits for a nudge, so after the member has joined.
#[derive(Debug)]
struct Panics(Memory);

impl Engine for Panics {
    type Version = u64;

    async fn read(&mut self) -> Result<Snapshot<u64>, EngineError> {
        self.0.read().await
    }

    async fn swap(&mut self, version: &u64, bytes: &[u8]) -> Result<bool, EngineError> {
        self.0.swap(version, bytes).await
    }

    async fn nudge(&mut self) -> Result<(), EngineError> {
        self.0.nudge().await
    }

    async fn nudged(&mut self) {
        panic!("an engine of a user");
    }
}
