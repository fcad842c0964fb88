//! The lines that a member logs.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::SECOND;
use crate::rig::Rig;

#[tokio::test(start_paused = true)]
async fn an_operator_reads_of_a_lost_engine_a_silent_member_and_a_dispute() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let rig = Rig::new();
    let seat = rig.join(10).await;
    let named = |joining: cenote_fleet::Joining<_>| joining.name("batch-1").capacity(8);
    let other = rig.join_with(named).await;
    sleep(5 * SECOND).await;

    other.line.is_cut.store(true, Ordering::Relaxed);
    sleep(20 * SECOND).await;
    seat.line.fails.store(true, Ordering::Relaxed);
    seat.line.is_lost.store(true, Ordering::Relaxed);
    sleep(20 * SECOND).await;
    seat.line.is_lost.store(false, Ordering::Relaxed);
    seat.line.fails.store(false, Ordering::Relaxed);
    sleep(5 * SECOND).await;

    let of_seat = lines.of(seat.pool.name());
    let expected = [
        (
            Level::INFO,
            "joined a fleet: fleet: 1 of 10 out; here 1 (share 1)",
        ),
        (Level::DEBUG, "fleet: batch-1 has joined"),
        (
            Level::WARN,
            "fleet: members say different capacities: the lowest counts",
        ),
        (Level::WARN, "fleet: batch-1 is silent and fenced"),
        (Level::INFO, "fleet: batch-1 was buried"),
        (Level::INFO, "fleet: all members say one capacity again"),
        (
            Level::WARN,
            "fleet: the control connection was lost: the pool opens nothing",
        ),
        (
            Level::WARN,
            "fleet: the engine is away: the engine failed: connection refused",
        ),
        (
            Level::WARN,
            "fleet: the lease was over: the pool is stopped",
        ),
        (Level::INFO, "fleet: the engine is back"),
    ];
    for (level, text) in expected {
        let found = of_seat.iter().filter(|line| line.1 == text);
        let levels: Vec<_> = found.map(|line| line.0).collect();
        assert_eq!(levels, [level], "`{text}` in {of_seat:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_comes_and_goes_does_not_fill_the_log() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let rig = Rig::new();
    let set = |joining: cenote_fleet::Joining<_>| joining.capacity(10).ttl(SECOND);
    let seat = rig.join_with(set).await;

    for turn in 0..600 {
        seat.line.fails.store(turn % 2 == 0, Ordering::Relaxed);
        sleep(SECOND / 10).await;
    }

    let seen = lines.of(seat.pool.name());
    assert!(
        (10..=130).contains(&seen.len()),
        "{} lines in a minute",
        seen.len()
    );
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_panics_does_no_harm_to_a_member() {
    let _guard = tracing::subscriber::set_default(Lines {
        panics: true,
        ..Lines::default()
    });
    let rig = Rig::new();

    let seat = rig.join(10).await;
    let _callers = seat.want(5);

    seat.lends(5).await;
}

/// Keeps each line as its level, pool and text.
#[derive(Clone, Default)]
struct Lines {
    kept: Arc<Mutex<Vec<(Level, Fields)>>>,
    panics: bool,
}

impl Lines {
    fn of(&self, pool: &str) -> Vec<(Level, String)> {
        let kept = self.kept.lock().unwrap();
        let of_pool = kept.iter().filter(|(_, fields)| fields.pool == pool);
        of_pool
            .map(|(level, fields)| (*level, fields.text.clone()))
            .collect()
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "cenote"
            && metadata
                .file()
                .is_some_and(|file| file.ends_with("fleet/src/log.rs"))
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        assert!(!self.panics, "a subscriber of a user");
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.kept
            .lock()
            .unwrap()
            .push((*event.metadata().level(), fields));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Fields {
    pool: String,
    text: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.text = format!("{value:?}");
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "pool" {
            self.pool = value.to_owned();
        }
    }
}
