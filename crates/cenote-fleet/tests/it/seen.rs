//! What users see of a fleet: the errors of their callers, and what has changed.

use std::sync::atomic::Ordering;

use cenote::{AcquireError, Pool};
use cenote_fleet::{Change, Fleet, Memory};

use crate::SECOND;
use crate::rig::{Rig, eventually};

#[tokio::test(start_paused = true)]
async fn a_timeout_says_which_members_have_how_much() {
    let engine = Memory::new();
    let pool = || Pool::from_fn(async || Ok::<_, &str>(())).build().unwrap();
    let (busy, calm) = (pool(), pool());
    let join = || Fleet::on(engine.clone()).capacity(10);
    let first = join().join(&busy).await.unwrap();
    let second = join().floor(4).name("batch-1").join(&calm).await.unwrap();
    let mut leases = Vec::new();
    for _ in 0..6 {
        leases.push(busy.acquire().await.unwrap());
    }

    let error = busy.acquire_within(SECOND).await.unwrap_err();

    let note = "fleet: 10 of 10 out; here 6 (share 6); most: batch-1 4";
    let text = error.to_string();
    assert!(
        text.contains("no resource within 1.0s: 6 of 6 in use"),
        "{text}"
    );
    assert!(text.contains(note) && !text.contains("max_size"), "{text}");
    let AcquireError::TimedOut(seen) = error else {
        panic!("{error:?}");
    };
    assert_eq!(seen.note(), Some(note));
    assert_eq!(first.to_string(), note);

    drop((leases, second));
    first.leave().await;
    let text = busy.acquire_within(SECOND).await.unwrap_err().to_string();
    assert!(!text.contains("fleet:"), "the note has gone: {text}");
}

#[tokio::test(start_paused = true)]
async fn a_member_without_a_name_is_known_by_its_host_and_process() {
    let seat = Rig::new().join(10).await;

    let status = seat.fleet.status();

    let name = status.mine().unwrap().name;
    let process = format!(":{}", std::process::id());
    assert!(name.as_str().ends_with(&process), "{name}");
    assert!(name.as_str().len() > process.len(), "{name}");
}

#[tokio::test(start_paused = true)]
async fn a_pool_without_a_share_says_why_in_place_of_the_advice_to_resume() {
    let rig = Rig::new();
    let seat = rig.join(10).await;
    seat.line.fails.store(true, Ordering::Relaxed);
    eventually(
        || format!("{:?}", seat.fleet.status()),
        || seat.pool.is_suspended(),
    )
    .await;

    let error = seat.pool.acquire_within(SECOND).await.unwrap_err();

    let text = error.to_string();
    let note = "fleet: 1 of 10 out; here 1 (share 0); the engine failed: ";
    assert!(text.contains(note) && !text.contains("`resume`"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn every_change_is_told_once() {
    let rig = Rig::new();
    let seat = rig.join(10).await;
    let mut before = seat.fleet.status();
    let mut changes = |what: Change| {
        let now = seat.fleet.status();
        let is_told = now.changes_since(&before).contains(&what);
        if is_told {
            before = now;
        }
        is_told
    };
    let what = || format!("{:?}", seat.fleet.status());

    let other = rig.join_with(|joining| joining.capacity(8)).await;
    let id = other.fleet.id();
    let name = other.fleet.status().mine().unwrap().name;
    eventually(what, || changes(Change::Joined(id, name))).await;
    assert!(seat.fleet.status().disputed);
    let callers = seat.want(5);
    eventually(what, || changes(Change::Share { from: 1, to: 5 })).await;
    drop(callers);

    other.line.is_cut.store(true, Ordering::Relaxed);
    eventually(what, || {
        changes(Change::Fenced(id, name)) || changes(Change::Buried(id, name))
    })
    .await;
    seat.line.fails.store(true, Ordering::Relaxed);
    eventually(what, || changes(Change::LeaseOver)).await;
    seat.line.fails.store(false, Ordering::Relaxed);
    eventually(what, || changes(Change::EngineBack)).await;

    rig.memory.overwrite(None);
    eventually(what, || changes(Change::Learned(false))).await;
    eventually(what, || changes(Change::Learned(true))).await;
    assert_eq!(seat.fleet.status().changes_since(&before), []);
}
