//! Tests of the watch.

use std::sync::Weak;
use std::time::Duration;

use cenote::{Closures, Pool};

use super::*;

struct Nothing;

impl Distribution for Nothing {
    fn record(&self, _: Duration) {}
}

fn pool(name: &str) -> Pool<Closures<()>> {
    let pool = Pool::from_fn(async || Ok::<_, &str>(())).name(name);
    pool.build().unwrap()
}

fn recorders(watch: &Watch<Nothing>) -> Vec<Weak<Recorder<Nothing>>> {
    let all = watch.look();
    all.iter().map(|it| Arc::downgrade(&it.recorder)).collect()
}

#[test]
fn a_dropped_watch_leaves_no_observer_behind() {
    let pool = pool("kept");
    let watch = Watch::new(Pools::of(&pool), |_, _| Nothing);
    let recorder = recorders(&watch).remove(0);

    drop(watch);

    assert!(recorder.upgrade().is_none(), "the pool has let go of it");
    assert_eq!(pool.status().acquired, 0, "the pool lives");
}

#[test]
fn a_pool_gets_one_recorder_however_often_it_is_seen() {
    let pool = pool("once");
    let watch = Watch::new(Pools::of(&pool).and(&pool), |_, _| Nothing);

    let first = recorders(&watch);
    let second = recorders(&watch);

    assert_eq!((first.len(), second.len()), (1, 1));
    assert!(Weak::ptr_eq(&first[0], &second[0]));
}

#[test]
fn a_label_is_free_again_when_its_pool_is_gone() {
    let (one, two) = (pool("same"), pool("same"));
    let watch = Watch::new(Pools::of(&one).and(&two), |_, _| Nothing);
    let labels = || -> Vec<String> {
        let all = watch.snapshots().into_iter();
        all.map(|(pool, _)| pool.label.to_string()).collect()
    };

    assert_eq!(labels(), ["same", "same#2"]);
    drop(one);
    assert_eq!(labels(), ["same#2"]);
}

#[test]
fn threads_that_look_at_once_attach_one_recorder() {
    let watch = Watch::new(Pools::all(), |_, _| Nothing);
    let pools: Vec<_> = (0..20)
        .map(|number| pool(&format!("many {number}")))
        .collect();

    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| watch.look());
        }
    });

    for pool in &pools {
        let name = pool.config().name.unwrap();
        let all = watch.look();
        let same = all.iter().filter(|one| one.pool.name() == name);
        assert_eq!(same.count(), 1);
    }
}
